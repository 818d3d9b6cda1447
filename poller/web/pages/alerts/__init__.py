"""The pages of alerts and of maintenance."""
