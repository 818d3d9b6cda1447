"""What a run of `poller up` achieved: polls, punctuality, CPU per poll, and whether the board kept its promise."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from poller.bootstrap import Services
from poller.db.inventory import inventory_feed
from poller.db.record import run_ledger
from poller.domain.failures.outcome import Result
from poller.state.board.board_repair import Repair, Report
from poller.state.cluster import overview_reader
from poller.state.redis_client import store_errors

_TICK_MS = 1000 / os.sysconf("SC_CLK_TCK")
POLLED = (Result.OK, Result.PARTIAL, Result.FAILED)


@dataclass(frozen=True, slots=True)
class Mark:
    """A point in time: polls so far, and CPU milliseconds used so far by role name."""

    at: float
    polls: int
    cpu_ms: Mapping[str, float]


def mark(services: Services, processes: Mapping[str, int]) -> Mark:
    """Where we are now. `processes` maps role names to process ids."""
    with store_errors(services.redis):
        polls = int(services.redis.hget(services.keys.totals, "polls") or 0)
    return Mark(time.monotonic(), polls, {name: cpu_ms(pid) for name, pid in processes.items()})


def cpu_ms(pid: int) -> float:
    """User and system CPU time of a process; 0 once it is gone."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) * _TICK_MS


def cpu_per_poll(first: Mark | None, last: Mark) -> dict[str, float]:
    """CPU milliseconds per poll of beat, of all workers, and of these together with the embedded server."""
    polls = last.polls - first.polls if first else 0
    if not first or polls <= 0:
        return {"beat": 0.0, "worker": 0.0, "total": 0.0}

    def used(prefixes: Iterable[str]) -> float:
        names = [name for name in last.cpu_ms if name.startswith(tuple(prefixes))]
        return round(sum(last.cpu_ms[n] - first.cpu_ms.get(n, 0.0) for n in names) / polls, 4)

    return {
        "beat": used(["beat"]),
        "worker": used(["worker"]),
        "total": used(["beat", "worker", "valkey"]),
    }


def places(services: Services) -> Mapping[str, int]:
    """How many targets are where, while everything runs."""
    view = overview_reader.read(services.redis, services.keys)
    return {"due": view.due, "in_flight": view.in_flight, "parked": view.parked, "held": view.held}


def verify(services: Services) -> Report:
    """Every enabled target of the inventory must be in exactly one place."""
    with inventory_feed.all_specs(services.engine) as fleet:
        return Repair(services.board).check(fleet.specs)


def summarise(
    services: Services,
    since_ms: int,
    seconds: float,
    cpu: Mapping[str, float],
    board: Mapping[str, int],
    check: Report,
) -> dict[str, Any]:
    """The object that `poller up --json` prints."""
    outcomes = run_ledger.counts(services.engine, since_ms)
    late = run_ledger.lateness(services.engine, since_ms)
    polls = sum(outcomes.get(result, 0) for result in POLLED)
    overlaps = run_ledger.overlaps(services.engine, since_ms)
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
