"""The record as people and programs read it: runs, events, readings, rates."""
