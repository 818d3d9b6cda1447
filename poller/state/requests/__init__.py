"""Traces of API requests that Redis keeps for a while: responses, and tickets of polls."""
