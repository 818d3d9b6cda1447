"""What polls leave in SQL: the run ledger, readings, dead letters, events, and their retention."""
