"""The inventory as scrapes read it."""
