"""Inventory files and the database behind the inventory commands: read, check, import, export."""
