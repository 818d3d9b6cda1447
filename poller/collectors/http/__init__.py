"""The http collector: does it answer as it should, how fast, and how long is its certificate good for?"""

from poller.collectors.http.collector import HttpCollector

__all__ = ["HttpCollector"]
