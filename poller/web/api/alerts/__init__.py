"""Routes of rules, alerts, maintenance, notifications and parents."""
