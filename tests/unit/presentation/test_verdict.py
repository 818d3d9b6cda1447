"""One verdict for the page, `poller status`, its exit code, the API and `/readyz`."""

from __future__ import annotations

import dataclasses

import pytest
import web_overviews as fleet

from poller.domain.record.overview import Lateness, Leader, Load, Overview, Point, State
from poller.presentation import health
from poller.presentation.health import Level, Stores

TARGETS = 160
NO_CONNECTION = "cannot use the database postgresql://db/poller (sorry, too many clients already)"
NO_TABLES = "the database has no tables yet; run: poller db upgrade"
FULL = "OutOfMemoryError: command not allowed when used memory > 'maxmemory'."
DISK = "cannot use the database sqlite:////var/poller.db (database or disk is full)"


def points(silent_s: int = 0) -> tuple[Point, ...]:
    """Fifteen minutes of 27 polls in each slice of ten seconds; none in the last seconds."""
    slices = []
    for number in range(90):
        at_ms = fleet.NEWEST_MS - (89 - number) * fleet.SLICE_MS
        is_silent = at_ms >= fleet.NOW_MS - silent_s * 1000
        slices.append(Point(at_ms, 10.0, 0 if is_silent else 27, 0, 40.0))
    return tuple(slices)


POLLED = Overview(
    as_of_ms=fleet.NOW_MS,
    targets=TARGETS,
    states={State.OK: TARGETS},
    due=150,
    overdue=0,
    in_flight=10,
    parked=0,
    polls_per_second=2.7,
    outcomes={"ok": 800},
    lateness=Lateness(800, 12.0, 86.0, 240.0),
    recent=points(),
    loads=(Load("poll.snmp", 150, 0, 0, 2.67, 2.7, workers=2, shortage=0.0),),
    leader=Leader("beat-1:4711", 7, fleet.NOW_MS - 7_931_000),
    standbys=0,
    workers=(fleet.worker(1), fleet.worker(2)),
    errors=(),
    totals={"polls": 9_000},
)
EMPTIED = dataclasses.replace(POLLED, targets=0, states={}, totals={}, recent=(), due=0)
WITHOUT_LEADER = dataclasses.replace(EMPTIED, leader=None, workers=())


def workers(**changes: object) -> tuple[object, ...]:
    return (fleet.worker(1, **changes), fleet.worker(2, **changes))


def changed(overview: Overview = POLLED, **changes: object) -> Overview:
    return dataclasses.replace(overview, **changes)  # type: ignore[arg-type]


SITUATIONS = {
    "all is well": (
        POLLED,
        Stores(),
        (Level.OK, 0, True),
        "All 160 targets answer. Polling is on time.",
    ),
    "a first run": (
        fleet.EMPTY,
        Stores(sql_targets=0),
        (Level.OK, 0, True),
        "Nothing to poll yet. Three ways to begin:",
    ),
    "PostgreSQL is out of connections for the workers": (
        changed(recent=points(40), workers=workers(store_error=NO_CONNECTION)),
        Stores(),
        (Level.DOWN, 1, True),
        "Nothing is being polled: no poll has finished for 32 s. "
        f"2 of 2 workers report: {NO_CONNECTION}.",
    ),
    "PostgreSQL is out of connections for all": (
        changed(recent=points(40), workers=workers(store_error=NO_CONNECTION)),
        Stores(sql_error=NO_CONNECTION),
        (Level.DOWN, 5, False),
        f"C{NO_CONNECTION[1:]}. Nothing is being polled: no poll has finished for 32 s. "
        "2 of 2 workers report the same.",
    ),
    "SQL is away while known targets are polled": (
        POLLED,
        Stores(sql_error=NO_CONNECTION),
        (Level.DOWN, 5, False),
        f"C{NO_CONNECTION[1:]}. All 160 targets answer. Polling is on time.",
    ),
    "workers are rate limited": (
        changed(recent=points(30), in_flight=128, unstarted=128, workers=workers(rate_limit="1/m")),
        Stores(),
        (Level.DOWN, 1, True),
        "Nothing is being polled: no poll has finished for 22 s. "
        "128 targets are in flight for 5 s and not started. "
        "2 of 2 workers start at most 1/m batches: a rate limit of celery control.",
    ),
    "some batches are not started": (
        changed(in_flight=64, unstarted=64),
        Stores(),
        (Level.ATTENTION, 0, True),
        "All 160 targets answer. Polling is late: 64 in flight for 5 s and not started.",
    ),
    "no poll ends, and none knows why": (
        changed(recent=points(60), in_flight=160, unstarted=160),
        Stores(),
        (Level.DOWN, 1, True),
        "Nothing is being polled: no poll has finished for 52 s. "
        "160 targets are in flight for 5 s and not started.",
    ),
    "Redis was emptied and nothing runs": (
        WITHOUT_LEADER,
        Stores(sql_targets=TARGETS),
        (Level.DOWN, 1, True),
        "No leader: nothing is being scheduled. No worker is running: nothing is being polled. "
        "160 targets of the database are not on the board yet.",
    ),
    "Redis was emptied and the leader fills the board": (
        EMPTIED,
        Stores(sql_targets=1),
        (Level.ATTENTION, 0, True),
        "1 target of the database is not on the board yet.",
    ),
    "a database without tables": (
        fleet.EMPTY,
        Stores(sql_error=NO_TABLES),
        (Level.DOWN, 5, False),
        "The database has no tables yet; run: poller db upgrade. "
        "No leader: nothing is being scheduled. No worker is running: nothing is being polled.",
    ),
    "Redis is full": (
        POLLED,
        Stores(write_error=FULL),
        (Level.DOWN, 5, False),
        f"Redis takes no writes, so nothing can be scheduled: {FULL}",
    ),
    "Redis is full before the first poll": (
        fleet.EMPTY,
        Stores(write_error=FULL, sql_targets=0),
        (Level.DOWN, 5, False),
        f"Redis takes no writes, so nothing can be scheduled: {FULL} "
        "No leader: nothing is being scheduled. No worker is running: nothing is being polled.",
    ),
    "Redis is away": (
        None,
        Stores(redis_error="cannot use Redis at 127.0.0.1:6379/0"),
        (Level.DOWN, 5, False),
        "Cannot read the board: cannot use Redis at 127.0.0.1:6379/0.",
    ),
    "the disk of the database is full": (
        changed(workers=workers(store_error=DISK, spool_waiting=64)),
        Stores(),
        (Level.ATTENTION, 0, True),
        f"2 of 2 workers report: {DISK}. All 160 targets answer. Polling is on time. "
        "128 results cannot be written: a database or sink does not answer.",
    ),
    "all targets fail": (
        changed(states={State.FAILING: TARGETS}),
        Stores(),
        (Level.ATTENTION, 0, True),
        "160 of 160 targets failing.",
    ),
    "all targets fail and polling is late": (
        changed(states={State.FAILING: TARGETS}, overdue=80),
        Stores(),
        (Level.ATTENTION, 0, True),
        "160 of 160 targets failing. Polling is late: 80 overdue.",
    ),
}


@pytest.mark.parametrize("situation", SITUATIONS)
def test_each_situation_has_its_sentence_level_and_exit_code(situation: str) -> None:
    """Nothing that stops polling is called on time, and none of it exits with 0."""
    overview, stores, (level, exit_code, is_ready), text = SITUATIONS[situation]
    verdict = health.judge(overview, stores)
    assert (verdict.text, verdict.level) == (text, level)
    assert (verdict.exit_code, verdict.is_ready) == (exit_code, is_ready)
    assert verdict.alarm == (level is Level.DOWN)
    if level is Level.DOWN:
        assert verdict.title == "(!) poller"


@pytest.mark.parametrize("situation", SITUATIONS)
def test_the_reasons_are_the_text(situation: str) -> None:
    """The first reason is the weightiest; the first of a stop says what stops."""
    overview, stores, (level, *_), text = SITUATIONS[situation]
    verdict = health.judge(overview, stores)
    assert " ".join(verdict.reasons) == (text if verdict.reasons else "")
    assert verdict.reasons or level is Level.OK
