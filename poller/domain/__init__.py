"""Pure decisions: values in, values out. No clock, no randomness, no I/O."""
