"""Users, tokens, sessions and the audit log in the API."""
