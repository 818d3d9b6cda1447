"""What people do with a running fleet: polls, breakers, dead letters, the board, collectors."""
