"""The processes of `poller up` and `poller worker`: role commands, their supervisor, the embedded server."""
