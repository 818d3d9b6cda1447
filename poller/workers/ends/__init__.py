"""Ends of series, for sinks that take them: after a round, and of targets that are polled no more.

Without such a sink nothing here runs.
"""
