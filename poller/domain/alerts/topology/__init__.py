"""Parents of devices: chains of them, and what neighbours suggest."""
