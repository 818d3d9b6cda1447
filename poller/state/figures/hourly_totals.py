"""The counters of polls by collector as they were in each hour of the last day.

The leader copies them once an hour; what happened since is the difference to those of now.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from redis import Redis

from poller.domain.metrics import poll_totals
from poller.domain.metrics.poll_totals import PollTotals
from poller.state.cluster.stats_slices import number
from poller.state.keys import Keys
from poller.state.redis_client import store_errors

HOUR_MS = 3_600_000
#: Hours that are looked back.
HOURS = 24
#: A copy is kept for one more hour than it is looked for, and a little longer.
KEEP_S = (HOURS + 2) * 3_600
#: The field of a copy that says when it was made, in ms. No collector has an empty name.
AT = "|at"


@dataclass(frozen=True, slots=True)
class TotalsSince:
    """The counts of each collector since an instant, a day ago at most."""

    since_ms: int
    by_collector: Mapping[str, PollTotals] = field(default_factory=dict)


def keep(client: Redis, keys: Keys, now_ms: int) -> None:
    """Copy the counters for this hour, unless that was done. Raises StoreError."""
    name = keys.hourly_totals(now_ms // HOUR_MS)
    pipe = client.pipeline()
    pipe.copy(keys.poll_totals, name)
    pipe.hsetnx(name, AT, now_ms)
    pipe.expire(name, KEEP_S)
    with store_errors(client):
        pipe.execute()


def last_day(client: Redis, keys: Keys, now_ms: int) -> TotalsSince:
    """Return the counts since a day ago, or since the oldest copy. Raises StoreError.

    Two round trips, whatever the size of the fleet.
    """
    since_ms, name = _oldest(client, keys, now_ms)
    pipe = client.pipeline(transaction=False)
    pipe.hgetall(keys.poll_totals)
    pipe.hgetall(name)
    with store_errors(client):
        now, before = pipe.execute()
    counts = _since(_numbers(now), _numbers(before))
    return TotalsSince(since_ms or now_ms, poll_totals.parse(counts.items()))


def _oldest(client: Redis, keys: Keys, now_ms: int) -> tuple[int, str]:
    """When the oldest copy of the last day was made, and its key."""
    newest = now_ms // HOUR_MS
    names = [keys.hourly_totals(hour) for hour in range(newest - HOURS, newest + 1)]
    pipe = client.pipeline(transaction=False)
    for name in names:
        pipe.hget(name, AT)
    with store_errors(client):
        made = pipe.execute()
    for name, text in zip(names, made, strict=True):
        if text:
            return number(text), name
    return 0, names[-1]


def _numbers(fields: Mapping[Any, Any]) -> dict[str, int]:
    return {str(name): number(text) for name, text in fields.items() if name != AT}


def _since(now: Mapping[str, int], before: Mapping[str, int]) -> dict[str, int]:
    """The growth of each counter. After Redis was emptied, the counters of now are the growth."""
    is_older = all(now.get(name, 0) >= count for name, count in before.items())
    start = before if is_older else {}
    return {name: count - start.get(name, 0) for name, count in now.items()}
