"""Inventory files and the database of the inventory commands: parse, check, import, export."""
