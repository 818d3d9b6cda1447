"""The `poller` command. `main` is the entry; a command's module is imported when it is used."""
