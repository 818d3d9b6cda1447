"""The pages of credentials, users, tokens and sessions, as views."""
