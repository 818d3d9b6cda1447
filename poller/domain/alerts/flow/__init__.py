"""From signs to alerts: when an alert begins, fires, is held back, and ends."""
