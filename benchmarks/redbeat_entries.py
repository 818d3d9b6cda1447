"""One RedBeat entry per device, run by the stock scheduler in its own process.

Messages are discarded. Every entry is always due, which measures the maximum rate.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import Any

from celery.schedules import schedule

from benchmarks import progress
from benchmarks.stage import Server, stage

#: The interval of all entries, shorter than RedBeat can achieve.
DUE_PER_S = 5_000
WARM_UP_S = 3.0
LOOK_EVERY_S = 0.1


@dataclass(frozen=True, slots=True)
class Measured:
    per_second: float
    beat_us: float  # CPU per dispatched entry
    server_us: float
    server_bytes: float  # per entry


def measure(entries: int, seconds: float) -> Measured:
    """Fill a server with entries and measure how RedBeat dispatches them."""
    with stage() as apart:
        server = apart.server
        os.environ["BENCH_REDIS_URL"] = server.url
        empty = server.memory_bytes
        _save(entries)
        per_entry = (server.memory_bytes - empty) / entries
        command = [
            "-m",
            "celery",
            "-A",
            "benchmarks.redbeat_app",
            "--quiet",
            "beat",
            "-S",
            "redbeat.RedBeatScheduler",
        ]
        beat = apart.start("redbeat", command)
        progress.follow("waiting for RedBeat", 1, lambda: _discard(server) and 1, within_s=60)
        _discard_for(server, WARM_UP_S, "warming RedBeat up")
        before, began = (beat.cpu_s, server.cpu_s), time.monotonic()
        dispatched = _discard_for(server, seconds, "RedBeat dispatches")
        took, spent = time.monotonic() - began, (beat.cpu_s - before[0], server.cpu_s - before[1])
        return Measured(
            dispatched / took, spent[0] / dispatched * 1e6, spent[1] / dispatched * 1e6, per_entry
        )


def _save(entries: int) -> None:
    from redbeat import RedBeatSchedulerEntry

    from benchmarks.redbeat_app import app

    often = schedule(entries / DUE_PER_S)
    with progress.shown(f"saving {entries:,} RedBeat entries", entries) as show:
        for number in range(entries):
            RedBeatSchedulerEntry(
                f"device-{number}", "discarded.poll", often, args=[number], app=app
            ).save()
            show(number)


def _discard_for(server: Server, seconds: float, what: str) -> int:
    """Discard messages for some seconds, and return their number."""
    began, came = time.monotonic(), 0
    with progress.shown(what, seconds) as show:
        while (passed := time.monotonic() - began) < seconds:
            time.sleep(min(LOOK_EVERY_S, seconds - passed))
            came += _discard(server)
            show(passed)
    return came


def _discard(server: Server) -> int:
    from benchmarks.redbeat_app import QUEUE

    pipe: Any = server.redis.pipeline(transaction=True)
    length, _ = pipe.llen(QUEUE).delete(QUEUE).execute()
    return int(length)
