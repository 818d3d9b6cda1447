"""Rules, alerts, maintenance and notifications in SQL."""
