"""Destinations of results: a writer thread for each, and a spool while a destination is down."""
