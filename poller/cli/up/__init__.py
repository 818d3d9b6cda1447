"""The processes of `poller up` and `poller worker`: commands, supervisor, embedded server."""
