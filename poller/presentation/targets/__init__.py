"""One target as people read it: its explanation, its state and its next poll."""
