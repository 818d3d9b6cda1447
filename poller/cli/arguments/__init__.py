"""Command-line words to values: targets, durations, key=value pairs, secrets, confirmations, completion."""
