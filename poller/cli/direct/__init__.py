"""Collectors run directly in this process, with no database and no Redis: collect, discover."""
