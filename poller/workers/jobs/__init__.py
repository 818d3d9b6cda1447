"""Jobs on a worker: plan them, run their handlers, and write how each run ended."""
