"""Scrapes of exporters that poller stands in for: their parameters, and which poll answers."""
