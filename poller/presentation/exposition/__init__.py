"""Readings in the text format of Prometheus."""
