"""Receivers of notices: the contract, the registry, and the built-in ones."""
