"""The obvious design on the same agents: RedBeat, a stock prefork worker, server and database."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from celery.schedules import schedule

from benchmarks import agents, cluster, equal, if_mib, progress
from benchmarks.roles import Meter, Roles, Used
from benchmarks.stage import Stage, stage
from poller.sim.fleet import SimDevice

_CELERY = ["-m", "celery", "-A", "benchmarks.obvious_app", "--quiet"]
PATIENCE_S = 120


@dataclass(frozen=True, slots=True)
class Measured:
    used: Used
    polls: int
    samples: int  # of one poll
    late: Counter[int]  # ms beyond the interval since the device's previous poll -> polls


def measure(devices: Sequence[SimDevice], port: int, interval_s: float, seconds: float) -> Measured:
    """Measure polls of these devices, after a comparison of the values with those of the agents."""
    with stage() as apart:
        database = apart.home / "obvious.db"
        os.environ["BENCH_REDIS_URL"] = apart.server.url
        os.environ["BENCH_DATABASE"] = str(database)
        os.environ["BENCH_SNMP_PORT"] = str(port)
        _verify(devices[0])
        _save([device.address for device in devices], interval_s)
        roles = _start(apart)
        patience_s = PATIENCE_S + 4 * interval_s
        what = "the obvious design polls every device once"
        cluster.until(what, len(devices), lambda: _polled(database), patience_s)
        progress.wait("warming it up", interval_s)
        meter = Meter(roles)
        progress.wait("measuring the obvious design", seconds)
        return _measured(database, meter.read(), interval_s)


def _verify(device: SimDevice) -> None:
    """Check that the design reads exactly the variables of the agents."""
    from benchmarks import obvious_app

    rows = asyncio.run(obvious_app.walk(device.address))
    obvious_app.connect()  # creates the tables
    equal.same_names("the obvious design", {oid for oid, _ in rows}, agents.oids(if_mib.roots()))


def _save(addresses: Sequence[str], interval_s: float) -> None:
    """Save an entry per device, spread over the interval."""
    from redbeat import RedBeatSchedulerEntry

    from benchmarks.obvious_app import POLL, app

    every, now = schedule(interval_s), datetime.now(UTC)
    with progress.shown(f"saving {len(addresses):,} RedBeat entries", len(addresses)) as show:
        for number, address in enumerate(addresses):
            before = now - timedelta(seconds=interval_s * number / len(addresses))
            RedBeatSchedulerEntry(
                address, POLL, every, args=[address], app=app, last_run_at=before
            ).save()
            show(number)


def _start(apart: Stage) -> Roles:
    worker = apart.start("obvious-worker", [*_CELERY, "worker"])
    beat = apart.start("obvious-beat", [*_CELERY, "beat", "-S", "redbeat.RedBeatScheduler"])
    return {"beat": [beat.pid], "worker": [worker.pid], "server": [apart.server.pid]}


def _polled(database: Path) -> int:
    return int(_ask(database, "SELECT count(DISTINCT device) FROM polls")[0][0])


def _measured(database: Path, used: Used, interval_s: float) -> Measured:
    begin, end = used.began_ms / 1000, used.ended_ms / 1000
    query = "SELECT device, started FROM polls WHERE finished < ? ORDER BY device, started"
    polls, before, late = 0, ("", 0.0), Counter[int]()
    for device, started in _ask(database, query, end):
        if started >= begin:
            polls += 1
            if device == before[0]:
                late[max(0, round((started - before[1] - interval_s) * 1000))] += 1
        before = (device, started)
    counted = "SELECT count(*) FROM samples GROUP BY device, at ORDER BY at DESC LIMIT 1"
    return Measured(used, polls, int(_ask(database, counted)[0][0]), late)


def _ask(database: Path, query: str, *values: Any) -> list[Any]:
    with closing(sqlite3.connect(database, timeout=30)) as conn:
        return conn.execute(query, values).fetchall()
