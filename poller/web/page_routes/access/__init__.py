"""Routes of the pages of credentials, users, tokens and sessions."""
