"""Retention removes old rows in bounded steps; young rows and their shapes stay."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Collection

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller.db import database_clock, tables
from poller.db.history import compaction, partitions, polls_of_span
from poller.db.inventory import inventory_feed
from poller.db.record import event_rows, retention, run_ledger, run_pages, stored_readings
from poller.domain.failures.outcome import Result
from poller.domain.metrics.reading import Reading, ReadingSet
from poller.domain.record.event_kinds import Event, EventFilter, Kind
from poller.domain.record.run import Run

DAY = 86_400_000
NOW = 1_800_000_000_000
AGES = retention.Ages(
    runs_ms=30 * DAY,
    runs_failed_ms=90 * DAY,
    readings_ms=7 * DAY,
    events_ms=60 * DAY,
    target_days_ms=400 * DAY,
)


def prune(engine: Engine) -> retention.Pruned:
    return retention.prune(engine, NOW, AGES, sleep=lambda _: None)


def store(engine: Engine, days_ago: float, name: str = "m") -> None:
    at_ms = NOW - round(days_ago * DAY)
    run_ledger.write(engine, [Run(1, at_ms, Result.OK, started_ms=at_ms, finished_ms=at_ms)])
    shape = ReadingSet.of([Reading(name, 1.0)])
    stored_readings.Writer(engine).write([stored_readings.Stored(1, at_ms, shape)], at_ms)


def event(days_ago: int) -> Event:
    return Event(NOW - days_ago * DAY, Kind.CLOCK_MOVED, f"{days_ago} days ago")


def prove_a_week(engine: Engine) -> None:
    """Store a run a day: the runs show that the clock is right, and none is old."""
    run_ledger.write(engine, [Run(99, NOW - day * DAY, Result.OK) for day in range(1, 9)])


def count(engine: Engine, table: sa.Table) -> int:
    with engine.connect() as conn:
        return int(conn.execute(sa.select(sa.func.count()).select_from(table)).scalar_one())


def test_rows_older_than_their_retention_are_removed(engine: Engine) -> None:
    """Runs and readings have separate retention times; a second pass removes nothing."""
    prove_a_week(engine)
    for days in (0.5, 3, 8, 40):
        store(engine, days)
    done = prune(engine)
    assert (done.runs, done.readings) == (1, 2)
    assert (count(engine, tables.runs), count(engine, tables.readings)) == (3 + 8, 2)
    assert (
        stored_readings.latest(engine, [1]) == {}
    )  # target 1 is in no inventory, but its rows are still there
    assert prune(engine) == retention.Pruned()


def test_a_shape_is_removed_after_its_last_reading(engine: Engine) -> None:
    """A shape stays while a reading refers to it."""
    prove_a_week(engine)
    store(engine, 40, "old")
    store(engine, 1, "young")
    assert prune(engine).shapes == 1
    assert [stored.readings.values[0] for stored in polls_of_span.between(engine, 1, 0, NOW)] == [
        1.0
    ]


def test_failed_runs_stay_longer_than_good_ones(engine: Engine) -> None:
    """Failed and refused runs stay longer than good runs."""
    event_rows.record(engine, [(f"{day}-0", event(day)) for day in range(9)])
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
    left = {(row.run.outcome, (NOW - row.run.plan_ms) // DAY) for row in run_pages.recent(engine)}
    assert left == {(outcome, 10) for outcome in outcomes} | {
        (Result.FAILED, 40),
        (Result.REFUSED, 40),
    }


def test_events_have_a_separate_retention(engine: Engine) -> None:
    """The retention of events is neither that of runs nor that of readings."""
    prove_a_week(engine)
    happened = [event(day) for day in (10, 59, 61)]
    event_rows.record(engine, [(f"{each.at_ms}-0", each) for each in happened])
    assert prune(engine).events == 1
    assert [event.message for event in event_rows.recent(engine, EventFilter(), 10)] == [
        "10 days ago",
        "59 days ago",
    ]


def test_a_pass_is_bounded(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass removes a limited number of rows and pauses between steps; the next pass continues."""
    monkeypatch.setattr(retention, "CHUNK", 10)
    monkeypatch.setattr(retention, "ROWS", 30)
    prove_a_week(engine)
    run_ledger.write(engine, [Run(i, 1000, Result.OK) for i in range(1, 101)])
    rests: list[float] = []
    assert retention.prune(engine, NOW, AGES, sleep=rests.append).runs == 30
    assert (count(engine, tables.runs), len(rests)) == (70 + 8, 3)
    assert all(rest > 0 for rest in rests)
    assert prune(engine).runs == 30


def test_a_pass_that_takes_too_long_stops(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass stops at its time limit, and the next pass removes the rest."""
    monkeypatch.setattr(retention, "SECONDS", 0.0)
    prove_a_week(engine)
    run_ledger.write(engine, [Run(1, 1000, Result.OK)])
    assert prune(engine) == retention.Pruned()
    assert count(engine, tables.runs) == 1 + 8


@pytest.mark.parametrize("polls_after", [0, 1, 2])
def test_a_clock_that_is_100_days_ahead_removes_nothing(engine: Engine, polls_after: int) -> None:
    """Neither before the first poll by the wrong clock nor after some days of polls."""
    for day in range(4):
        store(engine, day)
    for day in range(polls_after):
        store(engine, day - 100)
    late_ms = NOW + 100 * DAY
    done = retention.prune(engine, late_ms, AGES, sleep=lambda _: None)
    assert done == retention.Pruned(kept_before=done.kept_before)
    assert done.kept_before is not None
    assert done.kept_before.since_ms == NOW
    assert count(engine, tables.runs) == count(engine, tables.readings) == 4 + polls_after


def test_rows_of_an_installation_that_was_off_age_again_after_a_week(engine: Engine) -> None:
    """A week of new rows shows that the clock is right; the old rows are then removed."""
    for day in range(100, 106):
        store(engine, day)
    for day in range(1, 9):
        store(engine, day)
    done = prune(engine)
    assert (done.runs, done.readings, done.kept_before) == (6, 7, None)
    assert count(engine, tables.runs) == 8


def test_rows_from_before_a_gap_are_removed_as_new_ones_come(engine: Engine) -> None:
    """A gap only stops the clock: rows from before it age with the new ones, and stay bounded."""
    for day in range(100, 107):
        store(engine, day)
    for day in range(4):
        store(engine, day)
    done = prune(engine)
    assert done.kept_before is not None
    assert (done.runs, done.readings) == (0, 4)


def test_a_short_gap_is_not_reported(engine: Engine) -> None:
    """A long weekend off removes some readings, but no kind of row as a whole."""
    for day in (*range(5, 12), 0, 1):
        store(engine, day)
    done = prune(engine)
    assert done.kept_before is None
    assert done.readings > 0


@pytest.mark.parametrize(("days_ago", "left"), [(9, 2), (13, 2), (15, 0)])
def test_the_newest_day_of_a_table_stays_for_a_week(
    engine: Engine, days_ago: int, left: int
) -> None:
    """Events prove the time. Readings did not come any more; after a week the last ones go, too."""
    event_rows.record(engine, [(f"{day}-0", event(day)) for day in range(1, 9)])
    for part in (0, 0.9, 1.1, 5):
        store(engine, days_ago + part)
    done = prune(engine)
    assert count(engine, tables.readings) == left
    assert [leftover.table for leftover in done.leftovers] == ["readings"] * bool(left)
    assert polls_of_span.between(engine, 1, 0, NOW) or not left


def test_pruned_removals_are_marked_for_a_board_that_lacks_them(engine: Engine) -> None:
    """A second pass has nothing to do; the mark is no target."""
    with inventory_feed.change(engine) as change:
        rows = [{"target_id": number, "version": change.version} for number in (1, 2, 3)]
        change.conn.execute(sa.insert(tables.removed_targets), rows)
    assert retention.prune_removals(engine, change.version - 1) == 0
    assert inventory_feed.changes_since(engine, 0).removed == [1, 2, 3]
    assert retention.prune_removals(engine, change.version) == 3
    assert retention.prune_removals(engine, change.version) == 0
    old = inventory_feed.changes_since(engine, change.version - 1)
    assert (old.removed, old.is_complete) == ([], False)
    assert inventory_feed.changes_since(engine, change.version).is_complete
    assert not inventory_feed.hosts_since(engine, ["snmp"], change.version - 1).is_complete


def test_the_clock_of_the_database_is_read_in_milliseconds(engine: Engine) -> None:
    """The servers of this test run on this host."""
    assert abs(database_clock.now_ms(engine) - time.time() * 1000) < 5_000


def compacted(engine: Engine, days: Collection[float]) -> None:
    """Store a poll and its block for each of these days; runs prove the time."""
    for days_ago in days:
        store(engine, days_ago)
    # A younger poll stays fresh: the newest one of a target always does.
    store(engine, min(days) - 0.5)
    compaction.compact(engine, NOW + 400 * DAY, lambda _: None, time.monotonic() + 60)


def polls_in_blocks(engine: Engine) -> list[int]:
    """Ages of stored polls in days, rounded down, the youngest first."""
    found = polls_of_span.between(engine, 1, 0, 2**62)
    return sorted((NOW - stored.at_ms) // DAY for stored in found)


@pytest.mark.parametrize("has_partitions", [True, False])
def test_blocks_past_their_retention_are_removed(engine: Engine, has_partitions: bool) -> None:
    """By the partition of a day on PostgreSQL, else one by one; a second pass removes nothing."""
    prove_a_week(engine)
    for days_ago in (12.5, 9.5, 6.5, 3.5):
        store(engine, days_ago)
    if has_partitions:
        partitions.prepare(engine, NOW)
    compacted(engine, (1.5,))
    assert polls_in_blocks(engine) == [1, 1, 3, 6, 9, 12]
    done = prune(engine)
    dropped = has_partitions and engine.dialect.name == "postgresql"
    assert (done.blocks, done.partitions >= 2) == ((0, True) if dropped else (2, False))
    assert polls_in_blocks(engine) == [1, 1, 3, 6]
    again = prune(engine)
    assert (again.blocks, again.readings, again.partitions) == (0, 0, 0)


def test_a_clock_that_is_100_days_ahead_removes_no_block(engine: Engine) -> None:
    """Blocks age with proven time only, as rows do; also where their days are partitions."""
    partitions.prepare(engine, NOW)
    compacted(engine, range(1, 5))
    late_ms = NOW + 100 * DAY
    done = retention.prune(engine, late_ms, AGES, sleep=lambda _: None)
    assert (done.blocks, done.partitions) == (0, 0)
    assert done.kept_before is not None
    assert len(polls_in_blocks(engine)) == 5


def test_blocks_alone_prove_the_time(engine: Engine) -> None:
    """Where runs are gone, days of blocks still show that the clock is right."""
    compacted(engine, [day + 0.5 for day in range(1, 12)])
    with engine.begin() as conn:
        conn.execute(sa.delete(tables.runs))
    done = prune(engine)
    assert done.kept_before is None
    assert max(polls_in_blocks(engine)) <= 7


@pytest.mark.parametrize(("days_ago", "left"), [(9, True), (16, False)])
def test_the_newest_day_of_blocks_stays_for_a_week(
    engine: Engine, days_ago: int, left: bool
) -> None:
    """Events prove the time. Polls did not come any more, and all of them are past retention."""
    event_rows.record(engine, [(f"{day}-0", event(day)) for day in range(1, 9)])
    compacted(engine, [days_ago + part for part in (0.6, 0.9, 3)])
    done = prune(engine)
    assert [leftover.table for leftover in done.leftovers] == ["readings"] * left
    assert bool(polls_in_blocks(engine)) == left
    assert 3 + days_ago not in polls_in_blocks(engine)


def test_a_shape_stays_as_long_as_a_block_may_need_it(engine: Engine) -> None:
    """Also where roll-ups are kept longer than polls."""
    prove_a_week(engine)
    store(engine, 40)
    store(engine, 1)
    with engine.begin() as conn:
        conn.execute(sa.update(tables.series_sets).values(seen_ms=NOW - 40 * DAY))
    longer = dataclasses.replace(AGES, history_5m_ms=400 * DAY)
    assert retention.prune(engine, NOW, longer, sleep=lambda _: None).shapes == 0
    assert prune(engine).shapes == 1
