"""The leader's part in jobs: RedBeat entries from the catalogue, firing, closing, events."""
