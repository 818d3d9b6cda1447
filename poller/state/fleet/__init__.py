"""Reads of the board for pages of the whole fleet, in bounded steps."""
