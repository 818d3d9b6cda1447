"""What the processes share besides the board: leader lock, worker registry, queues, events, quarantine, overview."""
