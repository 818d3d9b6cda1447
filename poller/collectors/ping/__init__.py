"""The ping collector: is it there, how far away, and how much gets lost? ICMP where the system allows, else TCP."""

from poller.collectors.ping.collector import PingCollector

__all__ = ["PingCollector"]
