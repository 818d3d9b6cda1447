"""RouterOS API servers: sentences on plain TCP, sessions with both logins, and declarative tables."""
