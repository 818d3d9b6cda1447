"""Where results go: a writer thread for each destination, and the spool on disk while a destination is away."""
