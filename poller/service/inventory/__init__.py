"""What people and programs do with the inventory: the one place of its rules, for CLI and API."""
