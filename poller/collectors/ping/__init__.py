"""The ping collector: availability, loss and round trips, by ICMP or TCP."""

from poller.collectors.ping.collector import PingCollector

__all__ = ["PingCollector"]
