"""The routes of the pages. Each reads what its page shows, and lets the renderer answer."""
