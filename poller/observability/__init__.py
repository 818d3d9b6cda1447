"""Logs of every role, and reports of bugs to Sentry."""
