"""Roll-ups of polls: verdicts of whole columns, cut into buckets of five minutes and of an hour."""
