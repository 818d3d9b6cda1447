"""Old rows go, in bounded steps; young ones and their shapes stay."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller.db import readings, retention, runs, tables
from poller.domain.outcome import Result
from poller.domain.readings import Reading, ReadingSet
from poller.domain.run import Run

DAY = 86_400_000
NOW = 1_800_000_000_000


def store(engine: Engine, days_ago: float, name: str = "m") -> None:
    at_ms = NOW - round(days_ago * DAY)
    runs.write(engine, [Run(1, at_ms, Result.OK, started_ms=at_ms, finished_ms=at_ms)])
    shape = ReadingSet.of([Reading(name, 1.0)])
    readings.Writer(engine).write([readings.Stored(1, at_ms, shape)], at_ms)


def count(engine: Engine, table: sa.Table) -> int:
    with engine.connect() as conn:
        return int(conn.execute(sa.select(sa.func.count()).select_from(table)).scalar_one())


def test_what_is_older_than_its_time_goes(engine: Engine) -> None:
    """Runs and readings have times of their own; a second pass finds nothing."""
    for days in (0.5, 3, 8, 40):
        store(engine, days)
    done = retention.prune(engine, NOW, 30 * DAY, 7 * DAY)
    assert (done.runs, done.readings) == (1, 2)
    assert (count(engine, tables.runs), count(engine, tables.readings)) == (3, 2)
    assert readings.latest(engine, [1]) == {}  # target 1 is in no inventory, but its rows are still there
    assert retention.prune(engine, NOW, 30 * DAY, 7 * DAY) == retention.Pruned(0, 0, 0, 0)


def test_a_shape_goes_after_its_last_reading(engine: Engine) -> None:
    """Never before."""
    store(engine, 40, "old")
    store(engine, 1, "young")
    assert retention.prune(engine, NOW, 30 * DAY, 7 * DAY).shapes == 1
    assert [stored.readings.values[0] for stored in readings.between(engine, 1, 0, NOW)] == [1.0]


def test_a_pass_is_bounded(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """However much there is to do."""
    monkeypatch.setattr(retention, "CHUNK", 10)
    monkeypatch.setattr(retention, "CHUNKS", 3)
    runs.write(engine, [Run(i, 1000, Result.OK) for i in range(1, 101)])
    assert retention.prune(engine, NOW, DAY, DAY).runs == 30
    assert count(engine, tables.runs) == 70
