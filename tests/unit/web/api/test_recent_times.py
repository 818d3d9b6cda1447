"""The times of queues are read once for each slice of ten seconds."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from poller.service.cluster.recent_times import RecentTimes
from poller.state.cluster import queue_loads


def test_viewers_of_one_slice_share_a_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only whole slices count, so a second reading could find nothing else."""
    reads: list[int] = []

    def times(_client: Any, _keys: Any, now_ms: int) -> dict[str, Any]:
        reads.append(now_ms)
        return {"poll.snmp": len(reads)}

    monkeypatch.setattr(queue_loads, "times", times)
    services: Any = SimpleNamespace(redis=None, keys=None)
    cache: Any = RecentTimes(services)
    found = [cache.at(at_ms) for at_ms in (20_000, 23_000, 29_999, 30_000)]
    assert reads == [20_000, 30_000]
    assert [each["poll.snmp"] for each in found] == [1, 1, 1, 2]
