"""Redis besides the board: leader lock, workers, queues, events, quarantine, overview."""
