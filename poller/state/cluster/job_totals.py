"""Counters of job runs, kept in one hash of Redis: counted where a run ends, so they only grow and
outlive every worker.

| field                | value                                                              |
|----------------------|--------------------------------------------------------------------|
| `<job>|run|<outcome>`| attempts that ended so                                             |
| `<job>|le|<n>`       | attempts whose duration is in the n-th bucket of run_totals.py     |
| `<job>|ms`           | the sum of their durations                                         |
| `<job>|starts`       | attempts whose lateness was measured                               |
| `<job>|late_ms`      | the sum of their lateness                                          |
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from redis import Redis

from poller import errors
from poller.domain.jobs import run_totals
from poller.domain.jobs.run_totals import RunOutcome, RunTotals
from poller.state.cluster.stats_slices import number
from poller.state.keys import Keys
from poller.state.redis_client import store_errors


def record_run(
    client: Redis,
    keys: Keys,
    job: str,
    outcome: RunOutcome,
    duration_s: float,
    lateness_s: float | None = None,
) -> None:
    """Count one attempt that ended. Lateness is its dispatch minus its plan and delay; None for a
    further attempt or a demand. Never raises: a lost count is no reason to fail a run.
    """
    counts = Counter({f"{job}|run|{outcome.value}": 1})
    counts[f"{job}|le|{run_totals.bucket(duration_s)}"] = 1
    counts[f"{job}|ms"] = round(max(0.0, duration_s) * 1000)
    if lateness_s is not None:
        counts[f"{job}|starts"] = 1
        counts[f"{job}|late_ms"] = round(max(0.0, lateness_s) * 1000)
    _add(client, keys, counts)


def record_stale(client: Redis, keys: Keys, jobs: Iterable[str]) -> None:
    """Count the runs that the leader closed, one name for each. Never raises."""
    counts = Counter(f"{job}|run|{RunOutcome.STALE.value}" for job in jobs)
    _add(client, keys, counts)


def read(client: Redis, keys: Keys) -> dict[str, RunTotals]:
    """The counters of every job that ever ran. Raises StoreUnavailable."""
    with store_errors(client):
        fields: Any = client.hgetall(keys.job_totals)
    totals: defaultdict[str, RunTotals] = defaultdict(RunTotals)
    for name, text in fields.items():
        job, _, kind = name.partition("|")
        _fill(totals[job], kind, number(text))
    return dict(totals)


def forget(client: Redis, keys: Keys, job: str) -> None:
    """Remove the counters of a job. Raises StoreUnavailable."""
    with store_errors(client):
        names: Any = client.hkeys(keys.job_totals)
        fields = [name for name in names if name.startswith(f"{job}|")]
        if fields:
            client.hdel(keys.job_totals, *fields)


def _add(client: Redis, keys: Keys, counts: Counter[str]) -> None:
    """Add to the counters in one round trip."""
    if not counts:
        return
    with suppress(errors.StoreError), store_errors(client):
        pipe = client.pipeline(transaction=False)
        for name, count in counts.items():
            pipe.hincrby(keys.job_totals, name, count)
        pipe.execute()


def _fill(totals: RunTotals, kind: str, value: int) -> None:
    """Set one counter. A field of a later release is left out."""
    group, _, member = kind.partition("|")
    if group == "run" and member in set(RunOutcome):
        totals.outcomes[RunOutcome(member)] = value
    elif group == "le" and member.isdecimal():
        totals.buckets[int(member)] = value
    elif kind == "ms":
        totals.duration_ms = value
    elif kind == "starts":
        totals.starts = value
    elif kind == "late_ms":
        totals.lateness_ms = value
