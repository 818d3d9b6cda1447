"""History in SQL: blocks of polls, and roll-ups."""
