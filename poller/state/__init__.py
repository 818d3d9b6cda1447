"""Redis, fast and rebuildable: the board, the leader lock, workers, events and statistics."""
