"""The readings of a poll, and the rates of counters with a verdict for each."""
