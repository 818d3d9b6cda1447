"""Routes of the pages of what happened."""
