"""A sink for poller that writes one JSON line per poll. Entry point: see pyproject.toml."""

from poller_jsonlines.sink import JsonLinesSink

__all__ = ["JsonLinesSink"]
