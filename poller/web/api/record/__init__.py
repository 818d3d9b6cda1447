"""The record over HTTP: runs, events, readings, rates."""
