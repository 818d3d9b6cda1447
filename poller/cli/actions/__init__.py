"""Work that several commands share, separate from their options: requeue, release, demo fleet, waiting."""
