"""Retention removes old rows in bounded steps; young rows and their shapes stay."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller.db import tables
from poller.db.record import event_rows, retention, run_ledger, stored_readings
from poller.domain.failures.outcome import Result
from poller.domain.metrics.reading import Reading, ReadingSet
from poller.domain.record.event_kinds import Event, EventFilter, Kind
from poller.domain.record.run import Run

DAY = 86_400_000
NOW = 1_800_000_000_000
AGES = retention.Ages(
    runs_ms=30 * DAY, runs_failed_ms=90 * DAY, readings_ms=7 * DAY, events_ms=60 * DAY
)


def prune(engine: Engine) -> retention.Pruned:
    return retention.prune(engine, NOW, AGES, sleep=lambda _: None)


def store(engine: Engine, days_ago: float, name: str = "m") -> None:
    at_ms = NOW - round(days_ago * DAY)
    run_ledger.write(engine, [Run(1, at_ms, Result.OK, started_ms=at_ms, finished_ms=at_ms)])
    shape = ReadingSet.of([Reading(name, 1.0)])
    stored_readings.Writer(engine).write([stored_readings.Stored(1, at_ms, shape)], at_ms)


def count(engine: Engine, table: sa.Table) -> int:
    with engine.connect() as conn:
        return int(conn.execute(sa.select(sa.func.count()).select_from(table)).scalar_one())


def test_rows_older_than_their_retention_are_removed(engine: Engine) -> None:
    """Runs and readings have separate retention times; a second pass removes nothing."""
    for days in (0.5, 3, 8, 40):
        store(engine, days)
    done = prune(engine)
    assert (done.runs, done.readings) == (1, 2)
    assert (count(engine, tables.runs), count(engine, tables.readings)) == (3, 2)
    assert (
        stored_readings.latest(engine, [1]) == {}
    )  # target 1 is in no inventory, but its rows are still there
    assert prune(engine) == retention.Pruned()


def test_a_shape_is_removed_after_its_last_reading(engine: Engine) -> None:
    """A shape stays while a reading refers to it."""
    store(engine, 40, "old")
    store(engine, 1, "young")
    assert prune(engine).shapes == 1
    assert [stored.readings.values[0] for stored in stored_readings.between(engine, 1, 0, NOW)] == [
        1.0
    ]


def test_failed_runs_stay_longer_than_good_ones(engine: Engine) -> None:
    """Failed and refused runs stay longer than good runs."""
    outcomes = (Result.OK, Result.PARTIAL, Result.FAILED, Result.REFUSED)
    days = (10, 40, 100)
    run_ledger.write(
        engine,
        [
            Run(number, NOW - day * DAY, outcome)
            for day in days
            for number, outcome in enumerate(outcomes, 1)
        ],
    )
    done = prune(engine)
    assert (done.runs, done.runs_failed) == (4, 2)
    left = {(row.run.outcome, (NOW - row.run.plan_ms) // DAY) for row in run_ledger.recent(engine)}
    assert left == {(outcome, 10) for outcome in outcomes} | {
        (Result.FAILED, 40),
        (Result.REFUSED, 40),
    }


def test_events_have_a_separate_retention(engine: Engine) -> None:
    """The retention of events is neither that of runs nor that of readings."""
    happened = [Event(NOW - day * DAY, Kind.CLOCK_MOVED, f"{day} days ago") for day in (10, 59, 61)]
    event_rows.record(engine, [(f"{event.at_ms}-0", event) for event in happened])
    assert prune(engine).events == 1
    assert [event.message for event in event_rows.recent(engine, EventFilter(), 10)] == [
        "10 days ago",
        "59 days ago",
    ]


def test_a_pass_is_bounded(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass removes a limited number of rows and pauses between steps; the next pass continues."""
    monkeypatch.setattr(retention, "CHUNK", 10)
    monkeypatch.setattr(retention, "ROWS", 30)
    run_ledger.write(engine, [Run(i, 1000, Result.OK) for i in range(1, 101)])
    rests: list[float] = []
    assert retention.prune(engine, NOW, AGES, sleep=rests.append).runs == 30
    assert (count(engine, tables.runs), len(rests)) == (70, 3)
    assert all(rest > 0 for rest in rests)
    assert prune(engine).runs == 30


def test_a_pass_that_takes_too_long_stops(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass stops at its time limit, and the next pass removes the rest."""
    monkeypatch.setattr(retention, "SECONDS", 0.0)
    run_ledger.write(engine, [Run(1, 1000, Result.OK)])
    assert prune(engine) == retention.Pruned()
    assert count(engine, tables.runs) == 1
