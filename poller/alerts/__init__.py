"""Telling people of alerts: the receivers. What is told is decided in domain/alerts/telling."""
