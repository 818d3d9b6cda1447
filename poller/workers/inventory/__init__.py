"""What a worker knows of the inventory without asking SQL."""
