"""Who asks: tokens, sessions, proxies, forged requests, and the login page."""
