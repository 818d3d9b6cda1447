"""Roll-ups in SQL: made when a day is over, and right again after late results."""

from __future__ import annotations

import time
from collections.abc import Iterable

import numpy as np
import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller import errors
from poller.db import engine as sql
from poller.db import tables
from poller.db.history import compaction, rolled_up, rollup_marks, rollup_pass
from poller.db.history.rollup_marks import NewPolls
from poller.db.history.rollup_pass import RolledUp
from poller.db.history.rollups import Kept
from poller.db.inventory import devices, targets
from poller.db.record import retention
from poller.db.record.stored_readings import Stored, Writer
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.metrics.reading import Kind, Reading, ReadingSet
from poller.domain.rollups.rollup import FIVE_MINUTES_MS, HOUR_MS, Buckets, Rollup

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
#: 00:00 UTC.
START = 20_000 * DAY
#: Polls come 7 seconds after the full minute.
AFTER = 7_000
ALL = Kept()


@pytest.fixture
def target_id(engine: Engine) -> int:
    devices.add(engine, DeviceDraft("sw1", address="192.0.2.1"), [TargetDraft(collector="snmp")])
    return targets.show(engine, "sw1", "snmp").id


def write(engine: Engine, target_id: int, minutes: Iterable[int], per_minute: float = 600) -> None:
    """Store a poll for each of these minutes since the start; the counter grows evenly."""
    polls = []
    for minute in minutes:
        readings = ReadingSet.of(
            [
                Reading("octets", 10**9 + minute * per_minute, kind=Kind.COUNTER, width=64),
                Reading("ifOperStatus", 1.0),
                Reading("temperature", float(20 + minute % 2)),
            ]
        )
        polls.append(Stored(target_id, START + minute * MINUTE + AFTER, readings))
    Writer(engine).write(polls, START + 3 * DAY)


def rest(seconds: float) -> None:
    """No rest: nobody else polls."""


def compact_and_roll_up(engine: Engine, kept: Kept = ALL) -> RolledUp:
    now_ms = START + 3 * DAY
    until_mono = time.monotonic() + 60
    compaction.compact(engine, now_ms, rest, until_mono)
    return rollup_pass.roll_up(engine, now_ms, kept, rest, until_mono)


def stored(engine: Engine, target_id: int, step_ms: int = FIVE_MINUTES_MS) -> list[Rollup]:
    """The roll-ups of two days, read one by one: days with the same series would be joined."""
    return [
        found
        for day_ms in (START, START + DAY)
        for found in rolled_up.between(engine, target_id, step_ms, day_ms, day_ms + DAY)
    ]


def test_days_with_the_same_series_are_read_as_one_roll_up(engine: Engine, target_id: int) -> None:
    """A reader of a long range has no step per day. The numbers are those of the days."""
    write(engine, target_id, range(2 * 1440 + 10))
    compact_and_roll_up(engine)
    [joined] = rolled_up.between(engine, target_id, HOUR_MS, START, START + 2 * DAY)
    assert joined.buckets == Buckets(START, HOUR_MS, 48)
    days = stored(engine, target_id, HOUR_MS)
    for name in ("known_ms", "total", "low", "high"):
        apart = np.concatenate([getattr(day.counters, name) for day in days], axis=1)
        assert np.array_equal(getattr(joined.counters, name), apart)


def rows(engine: Engine) -> tuple[int, int, int]:
    """The numbers of rows of 5 minutes, of hours, and of marks."""
    counted = []
    with sql.reading(engine) as conn:
        for table in (tables.history_5m, tables.history_1h, tables.history_pending):
            count = sa.select(sa.func.count()).select_from(table)
            counted.append(conn.execute(count).scalar_one())
    return counted[0], counted[1], counted[2]


def test_days_that_are_over_are_rolled_up_once(engine: Engine, target_id: int) -> None:
    """Two days of polls: every count is in a bucket, and the edges at midnight fit together."""
    write(engine, target_id, range(2 * 1440 + 10))
    done = compact_and_roll_up(engine)
    assert (done.days, done.rows, done.is_complete) == (2, 4, True)
    assert rows(engine) == (2, 2, 1)  # the third day is not over

    first, second = stored(engine, target_id)
    assert first.counters.known_ms[0].tolist() == [300_000 - AFTER, *[300_000] * 287]
    assert second.counters.known_ms[0].tolist() == [300_000] * 288
    assert second.counters.total.sum() == 1440 * 600
    assert first.counters.total.sum() == 1440 * 600 - 70
    assert first.states.lasted_ms.sum() == DAY - AFTER

    hours = stored(engine, target_id, HOUR_MS)
    assert [hour.counters.total.sum() for hour in hours] == [1440 * 600 - 70, 1440 * 600]
    assert compact_and_roll_up(engine).days == 0


def test_a_day_that_is_not_over_is_computed_from_its_polls(engine: Engine, target_id: int) -> None:
    """A reader sees today before anything of it is compacted."""
    write(engine, target_id, range(31))
    [today] = stored(engine, target_id)
    assert today.counters.total[0, :6].tolist() == [2930, 3000, 3000, 3000, 3000, 3000]
    [hours] = stored(engine, target_id, HOUR_MS)
    assert hours.counters.total[0, 0] == 30 * 600
    assert rows(engine) == (0, 0, 0)


def test_late_results_correct_the_roll_ups_of_their_buckets(engine: Engine, target_id: int) -> None:
    """What was an average over a gap becomes known, also on the other side of midnight."""
    late = range(1430, 1450)
    write(engine, target_id, [minute for minute in range(2880) if minute not in late])
    compact_and_roll_up(engine)
    before = stored(engine, target_id)
    assert before[0].counters.gap_ms.sum() == 11 * MINUTE - AFTER
    assert before[1].counters.gap_ms.sum() == 10 * MINUTE + AFTER

    write(engine, target_id, late)
    assert compact_and_roll_up(engine).days == 2
    after = stored(engine, target_id)
    assert not any(day.counters.gap_ms.any() for day in after)
    assert sum(day.counters.total.sum() for day in after) == sum(
        day.counters.total.sum() for day in before
    )


def test_the_last_poll_before_a_late_first_one_is_of_another_day(
    engine: Engine, target_id: int
) -> None:
    """A device that was away over a night: the day that it left on learns of its return."""
    write(engine, target_id, range(1000))
    compact_and_roll_up(engine)
    write(engine, target_id, range(2000, 2010))
    compact_and_roll_up(engine)
    first, second = stored(engine, target_id)
    assert first.counters.gap_ms.sum() == 441 * MINUTE - AFTER
    assert second.counters.gap_ms.sum() == (2000 - 1440) * MINUTE + AFTER
    assert first.counters.total.sum() + second.counters.total.sum() == 2009 * 600


def test_a_day_that_was_marked_again_meanwhile_stays_marked(engine: Engine, target_id: int) -> None:
    """Polls that came while a day was rolled up are not forgotten."""
    write(engine, target_id, range(100))
    compaction.compact(engine, START + DAY, rest, time.monotonic() + 60)
    [seen] = rollup_marks.due(engine, START + DAY, (0, 0), 10)
    with sql.writing(engine) as conn:
        rollup_marks.mark(conn, [NewPolls(target_id, START + MINUTE, START + MINUTE)])
        rollup_marks.remove(conn, [seen])
    [left] = rollup_marks.due(engine, START + DAY, (0, 0), 10)
    assert left.marks == seen.marks + 1
    with sql.writing(engine) as conn:
        rollup_marks.remove(conn, [left])
    assert rollup_marks.due(engine, START + DAY, (0, 0), 10) == []


def test_a_day_that_lost_polls_keeps_its_roll_ups(engine: Engine, target_id: int) -> None:
    """A late poll of a day whose other polls are past their retention would replace all of it."""
    write(engine, target_id, range(1500))
    compact_and_roll_up(engine)
    with sql.writing(engine) as conn:
        conn.execute(sa.delete(tables.history_blocks))
    write(engine, target_id, [700])
    compact_and_roll_up(engine, kept=Kept(complete_since_ms=START + DAY))
    first, *_ = stored(engine, target_id)
    assert first.counters.total.sum() == 1440 * 600 - 70
    assert rows(engine)[2] == 0


def test_roll_ups_that_nobody_wants_are_not_made(engine: Engine, target_id: int) -> None:
    """A retention of 0 days writes no row; readers still get today's."""
    write(engine, target_id, range(1500))
    assert compact_and_roll_up(engine, kept=Kept(five_minutes=False)).rows == 2
    assert rows(engine) == (0, 2, 0)


def test_a_damaged_day_stays_marked_and_holds_up_no_other(engine: Engine, target_id: int) -> None:
    """The other days of the same step are rolled up."""
    write(engine, target_id, range(2880))
    compaction.compact(engine, START + 3 * DAY, rest, time.monotonic() + 60)
    blocks = tables.history_blocks
    with sql.writing(engine) as conn:
        damaged = sa.update(blocks).where(blocks.c.start_ms < START + 12 * HOUR)
        conn.execute(damaged.values(data=b"\x00broken"))
    done = rollup_pass.roll_up(engine, START + 3 * DAY, ALL, rest, time.monotonic() + 60)
    assert (done.damaged, done.days) == ({target_id}, 1)
    assert rows(engine)[2] == 1


def test_a_damaged_roll_up_is_named(engine: Engine, target_id: int) -> None:
    """The error says whose row it is."""
    write(engine, target_id, range(1500))
    compact_and_roll_up(engine)
    with sql.writing(engine) as conn:
        conn.execute(sa.update(tables.history_5m).values(data=b"\x01\xff"))
    with pytest.raises(errors.StoreError, match=f"target {target_id}"):
        stored(engine, target_id)


def test_retention_never_outruns_the_roll_ups(engine: Engine, target_id: int) -> None:
    """Polls past their retention stay until their day is rolled up, also while no job runs."""
    write(engine, target_id, range(2 * 1440 + 10))
    ages = retention.Ages(DAY, DAY, HOUR, DAY, DAY, history_5m_ms=400 * DAY)
    now_ms = START + 2 * DAY + 10 * MINUTE

    assert retention.prune(engine, now_ms, ages, rest).readings == 0
    compaction.compact(engine, START + 3 * DAY, rest, time.monotonic() + 60)
    assert retention.prune(engine, now_ms, ages, rest).blocks == 0
    assert compact_and_roll_up(engine).days == 2
    assert [each.counters.total.sum() for each in stored(engine, target_id)] == [863_930, 864_000]

    retention.prune(engine, now_ms, ages, rest)
    with sql.reading(engine) as conn:
        oldest_ms = conn.execute(sa.select(sa.func.min(tables.history_blocks.c.start_ms))).scalar()
    assert oldest_ms == START + DAY + AFTER  # the third day is marked, and needs the one before
    assert [each.counters.total.sum() for each in stored(engine, target_id)] == [863_930, 864_000]
