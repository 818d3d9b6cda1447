"""Pages of the platform's own parts, as texts: what its templates show."""
