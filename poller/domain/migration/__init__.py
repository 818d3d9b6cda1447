"""Moving over from other programs: what their files say, and what we make of it."""
