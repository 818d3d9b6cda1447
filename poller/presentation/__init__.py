"""Words, numbers and states as people see them. The command line and the web pages both stand on this room; it prints
nothing itself."""
