"""What `poller up` and `poller worker` run: the commands of each role, their supervisor, the embedded server."""
