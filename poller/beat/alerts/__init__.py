"""The leader's part of alerts: it reads levels and time, and keeps the alerts in SQL."""
