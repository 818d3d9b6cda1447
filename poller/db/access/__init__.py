"""Users, tokens, sessions and the audit log in SQL."""
