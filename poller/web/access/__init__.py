"""The door of the web role: tokens, sessions, proxies, forged requests, and the login page."""
