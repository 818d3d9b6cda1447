"""Roll-ups of the days that were compacted: bytes a bucket, and CPU a poll."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from benchmarks import cpu, progress
from benchmarks.compaction_cost import START_MS
from benchmarks.section import Figure
from poller.db import engine as sql
from poller.db.history import rollup_pass
from poller.db.history.rollups import Kept
from poller.db.tables import history_1h, history_5m
from poller.domain.rollups.touched_days import DAY_MS

_HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class RollUps:
    """What the roll-ups of some days took, and the size of a row of each kind."""

    figures: list[Figure]
    row_5m_bytes: float
    row_1h_bytes: float


def rolled_up(engine: Engine, pid: int | None, polls: int) -> RollUps:
    """Make the roll-ups of all days, and measure it."""
    name = engine.dialect.name
    progress.step(f"{name}, roll-ups")
    began_s, server_s = time.process_time(), cpu.tree_s(pid) if pid else 0.0
    now_ms = START_MS + DAY_MS + rollup_pass.SETTLES_MS + _HOUR_MS
    durations = [0.0]
    rollup_pass.roll_up(engine, now_ms, Kept(), durations.append, time.monotonic() + 600)
    took_s = time.process_time() - began_s + (cpu.tree_s(pid) - server_s if pid else 0.0)
    row_5m, row_1h = _row_bytes(engine)
    figures = [
        Figure(
            f"{name}_rollup_us", f"{name}, roll-ups", took_s / polls * 1e6, "us CPU/poll", below=25
        ),
        *_sizes(name, row_5m, row_1h),
    ]
    return RollUps(figures, row_5m, row_1h)


def _sizes(name: str, row_5m: float, row_1h: float) -> Iterator[Figure]:
    yield Figure(f"{name}_5m_kb", f"{name}, a device-day of 5 minutes", row_5m / 1000, "kB")
    yield Figure(f"{name}_1h_kb", f"{name}, a device-day of hours", row_1h / 1000, "kB")


def _row_bytes(engine: Engine) -> tuple[float, float]:
    """Return the mean size of a row of 5 minutes and of one of hours."""
    with sql.single_read(engine) as conn:
        found = []
        for table in (history_5m, history_1h):
            mean = sa.select(sa.func.avg(sa.func.length(table.c.data)))
            found.append(float(conn.execute(mean).scalar() or 0.0))
    return found[0], found[1]
