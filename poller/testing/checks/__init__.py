"""The checks of the collector contract, one function each. See `poller.testing.conformance`."""
