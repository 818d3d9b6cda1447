"""Routes of the pages of alerts and of maintenance."""
