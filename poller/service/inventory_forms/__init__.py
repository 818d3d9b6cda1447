"""Inventories as files: CSV, JSON and YAML, for the command line and the API."""
