"""Secrets: the vault, its keys, and the redaction of everything that is printed."""
