"""What every collector must keep to, one function for each promise. See `poller.testing.conformance`."""
