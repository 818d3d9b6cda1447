"""Our own jobs. They come in through the entry points `poller.jobs`, as those of a plugin do."""
