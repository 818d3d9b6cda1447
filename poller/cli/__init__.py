"""The `poller` command: `main` is the way in, one module per noun, imported when it is used."""
