"""Logs and metrics: what happened, for people and for machines."""
