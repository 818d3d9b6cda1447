"""RouterOS API servers: sentences over TCP or TLS, sessions with both logins, menus as tables."""
