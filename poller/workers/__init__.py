"""The worker role: batches from the queue to readings in the sinks."""
