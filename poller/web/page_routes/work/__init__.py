"""Routes of the pages of what waits to be done: jobs and dead letters."""
