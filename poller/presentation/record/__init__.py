"""Runs, events and readings as JSON: the same fields for the command line and the API."""
