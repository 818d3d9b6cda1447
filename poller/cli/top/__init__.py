"""`poller top`: the overview live in a terminal."""
