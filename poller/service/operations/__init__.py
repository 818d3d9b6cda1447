"""Actions on a running fleet: polls, breakers, dead letters, the board, collectors."""
