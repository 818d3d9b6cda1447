"""The http collector: checks web servers, their responses and their certificates."""

from poller.collectors.http.collector import HttpCollector

__all__ = ["HttpCollector"]
