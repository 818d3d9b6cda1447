"""Pages of what happened, as texts: events."""
