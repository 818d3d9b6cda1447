"""Command-line words to values: targets, filters, durations, options, secrets, completion."""
