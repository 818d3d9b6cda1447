"""Alerts in words and as JSON, for the command line, the API and the pages."""
