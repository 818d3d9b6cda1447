"""What requests of the API leave in Redis for a while: their responses, and tickets of polls."""
