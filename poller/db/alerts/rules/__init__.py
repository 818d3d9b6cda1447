"""Rules as rows: their statements, their owners, and what a check and a test of them read."""
