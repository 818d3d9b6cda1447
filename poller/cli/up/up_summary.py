"""The result of a run of `poller up`: polls, lateness, CPU per poll, and the check of the board."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from poller.bootstrap import Services
from poller.db.inventory import inventory_feed
from poller.db.record import run_ledger
from poller.domain.failures.outcome import Result
from poller.service.operations import board_actions
from poller.state.redis_client import store_errors

POLLED = (Result.OK, Result.PARTIAL, Result.FAILED)


@dataclass(frozen=True, slots=True)
class Mark:
    """The counters at one instant: polls so far, and CPU milliseconds so far by role name."""

    at_mono: float
    polls: int
    cpu_ms: Mapping[str, float]


def mark(services: Services, cpu_ms: Mapping[str, float]) -> Mark:
    """The counters now. `cpu_ms` is the CPU time of each role so far. Raises StoreError."""
    with store_errors(services.redis):
        polls = int(services.redis.hget(services.keys.totals, "polls") or 0)
    return Mark(time.monotonic(), polls, cpu_ms)


def cpu_per_poll(first: Mark | None, last: Mark) -> dict[str, float]:
    """CPU milliseconds per poll: of beat, of all workers, and of both with the embedded server."""
    polls = last.polls - first.polls if first else 0
    if not first or polls <= 0:
        return {"beat": 0.0, "worker": 0.0, "total": 0.0}

    def used(*prefixes: str) -> float:
        """CPU milliseconds per poll of the roles with these prefixes."""
        total = 0.0
        for name, cpu in last.cpu_ms.items():
            if name.startswith(prefixes):
                total += cpu - first.cpu_ms.get(name, 0.0)
        return round(total / polls, 4)

    return {
        "beat": used("beat"),
        "worker": used("worker"),
        "total": used("beat", "worker", "valkey"),
    }


def summarise(
    services: Services,
    since_ms: int,
    seconds: float,
    cpu: Mapping[str, float],
    board: Mapping[str, int],
) -> dict[str, Any]:
    """The object that `poller up --json` prints. Call this once nothing polls any more."""
    check = board_actions.verify(services)
    outcomes = run_ledger.counts(services.engine, since_ms)
    late = run_ledger.lateness(services.engine, since_ms)
    overlaps = run_ledger.overlaps(services.engine, since_ms)
    polls = sum(outcomes.get(result, 0) for result in POLLED)

    with inventory_feed.all_specs(services.engine) as fleet:
        targets = sum(spec.enabled for spec in fleet.specs)

    return {
        "targets": targets,
        "polls": polls,
        "outcomes": {result.value: number for result, number in outcomes.items()},
        "polls_per_second": round(polls / seconds, 2) if seconds else 0.0,
        "lateness_ms": {"p50": late.p50_ms, "p99": late.p99_ms, "max": late.max_ms},
        "cpu_ms_per_poll": dict(cpu),
        "board": {**board, "lost": len(check.lost), "doubled": len(check.doubled) + overlaps},
    }
