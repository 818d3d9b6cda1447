"""How people write rules: their fields, their checks, the built-in ones, and a test on history."""
