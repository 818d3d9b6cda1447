"""Metrics of one process: instruments that cost a dictionary entry, and the list of all of them.

Every layer may count; `poller.observability` writes and serves the numbers. Numbers of the whole
cluster are counted on the board instead, where they outlive a process.
"""
