"""Routes for what people do with a running fleet: polls, breakers, dead letters, board, jobs."""
