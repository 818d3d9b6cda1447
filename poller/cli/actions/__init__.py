"""Work that commands share, without their options: requeue, release, demo fleet, waiting."""
