"""Where readings go. `api` is the contract, `registry` finds sinks by entry point."""
