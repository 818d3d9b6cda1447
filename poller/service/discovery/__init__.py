"""Discovery of targets at an address, and polls of targets that are not stored: CLI and pages."""
