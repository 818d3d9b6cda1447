"""The record of polls: runs, the status of each target, events, and the overview for operators."""
