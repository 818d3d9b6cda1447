"""`python -m poller` is the `poller` command."""

from poller.cli.main import main

main()
