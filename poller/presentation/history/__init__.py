"""The history of readings as JSON and as text."""
