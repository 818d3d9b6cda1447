"""Doors for Prometheus: the readings of the fleet, and its devices for discovery."""
