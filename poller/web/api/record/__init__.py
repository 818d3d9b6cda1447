"""What was recorded, over HTTP: runs, events, readings, rates."""
