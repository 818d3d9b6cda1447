"""Pages of what waits to be done, as texts: jobs and dead letters."""
