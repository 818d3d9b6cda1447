"""Polls of scrapes, for addresses and modules that no target has."""
