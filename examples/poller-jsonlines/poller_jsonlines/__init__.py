"""A sink for poller that writes one JSON line per poll. pyproject.toml has its entry point."""

from poller_jsonlines.sink import JsonLinesSink

__all__ = ["JsonLinesSink"]
