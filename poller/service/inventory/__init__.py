"""Actions on the inventory: the one place of its rules, for the command line and the API."""
