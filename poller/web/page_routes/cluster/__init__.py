"""Routes of the pages of the platform's own parts."""
