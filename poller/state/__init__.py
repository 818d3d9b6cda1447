"""Redis, fast and rebuildable: the board, leadership, wake-ups, and what people look at."""
