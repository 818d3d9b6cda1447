"""Compaction moves polls into blocks. Every reader finds the same polls before and after."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from array import array
from collections.abc import Callable

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy.engine import Engine

from poller import errors
from poller.db import engine as sql
from poller.db import tables
from poller.db.history import blocks, compaction, partitions, polls_of_span, rollups
from poller.db.inventory import devices, targets
from poller.db.record import stored_readings
from poller.db.record.stored_readings import Stored, Writer
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.metrics.reading import Kind, Reading, ReadingSet

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
#: 23:20 UTC: spans of these tests cross midnight.
START = 20_000 * DAY - 40 * MINUTE
NOW = START + 30 * HOUR
SHAPES = [ReadingSet.of([Reading(name, 0.0, {}, Kind.COUNTER)]).series for name in "ab"]


def target(engine: Engine, name: str) -> int:
    devices.add(engine, DeviceDraft(name, address="192.0.2.1"), [TargetDraft(collector="snmp")])
    return targets.show(engine, name, "snmp").id


def poll(target_id: int, at_ms: int, value: float = 1.0, shape: int = 0) -> Stored:
    return Stored(target_id, at_ms, ReadingSet(SHAPES[shape], array("d", [value])))


def write(engine: Engine, *polls: Stored) -> None:
    Writer(engine).write(polls, NOW)


def compact(engine: Engine, now_ms: int = NOW) -> compaction.Compacted:
    return compaction.compact(engine, now_ms, lambda _: None, time.monotonic() + 60)


def counts(engine: Engine) -> tuple[int, int]:
    """Numbers of fresh rows and of polls in blocks."""
    with sql.reading(engine) as conn:
        fresh = conn.execute(sa.select(sa.func.count()).select_from(tables.readings)).scalar_one()
        total = sa.func.coalesce(sa.func.sum(tables.history_blocks.c.polls), 0)
        return int(fresh), int(conn.execute(sa.select(total)).scalar_one())


def clear(engine: Engine) -> None:
    with sql.writing(engine) as conn:
        for table in (tables.readings, tables.history_blocks, tables.history_pending):
            conn.execute(sa.delete(table))


Key = tuple[int, int]  # target, instant
Values = dict[Key, tuple[float, int]]


def answers(engine: Engine, ids: list[int], expected: Values) -> None:
    """Compare every reader with a plain list of polls."""
    names = [shape.id for shape in SHAPES]
    newest = stored_readings.latest(engine, ids)
    for target_id in ids:
        own = sorted(key for key in expected if key[0] == target_id)
        polls = [(at_ms, *expected[target_id, at_ms]) for _, at_ms in own]

        def plain(found: list[Stored]) -> list[tuple[int, float, int]]:
            return [
                (s.at_ms, s.readings.values[0], names.index(s.readings.series.id)) for s in found
            ]

        found = polls_of_span.between(engine, target_id, 0, 2**62)
        assert plain(found) == polls
        middle = polls[len(polls) // 2][0] if polls else START
        found = polls_of_span.between(engine, target_id, middle, middle + HOUR, 7)
        assert plain(found) == [p for p in polls if middle <= p[0] < middle + HOUR][:7]
        for count, since_ms in ((3, 0), (3, middle), (1000, middle), (1000, 0)):
            found = polls_of_span.newest(engine, [target_id], count, since_ms).get(target_id, [])
            before = [p for p in polls if p[0] < since_ms][-1:]
            assert plain(found) == [*before, *(p for p in polls if p[0] >= since_ms)][-count:]
        assert plain([newest[target_id]] if target_id in newest else []) == polls[-1:]
        with sql.reading(engine) as conn:
            around = polls_of_span.around(conn, target_id, middle, middle + HOUR)
        near = [p for p in polls if middle <= p[0] < middle + HOUR]
        near = [p for p in polls if p[0] < middle][-1:] + near
        near += [p for p in polls if p[0] >= middle + HOUR][:1]
        instants = [at_ms for block in around for at_ms in block.instants()]
        assert len(instants) == len(set(instants))
        assert set(instants) >= {p[0] for p in near}
        assert set(instants) <= {p[0] for p in polls}


class Crash(Exception):
    """Ends a step between its statements."""


steps = st.lists(
    st.one_of(
        # Polls in a row, late ones among them, and the same ones again with another value.
        st.tuples(
            st.just("write"),
            st.integers(0, 1),  # target
            st.integers(0, 29 * 60),  # minute
            st.integers(1, 90),  # polls
            st.sampled_from([1, 5]),  # minutes between them
            st.integers(0, 1),  # shape
        ),
        st.tuples(st.just("compact"), st.integers(0, 40 * 60)),
        st.tuples(st.just("crash"), st.integers(0, 40 * 60), st.integers(0, 2)),
    ),
    max_size=12,
)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps)
def test_readers_see_the_same_polls_whatever_was_compacted(
    engine: Engine, actions: list[tuple]
) -> None:
    """Fresh, late and doubled polls, compactions and crashes in any order, against a plain list."""
    clear(engine)
    ids = _ids(engine)
    expected: Values = {}
    value = itertools.count()
    for kind, *rest in actions:
        if kind == "write":
            which, minute, polls, every, shape = rest
            batch = []
            for number in range(polls):
                at_ms = START + (minute + number * every) * MINUTE
                one = float(next(value))
                batch.append(poll(ids[which], at_ms, one, shape))
                # A poll that is in the database stays as it is.
                expected.setdefault((ids[which], at_ms), (one, shape))
            write(engine, *batch)
        elif kind == "compact":
            compact(engine, START + rest[0] * MINUTE)
        else:
            _crash(engine, START + rest[0] * MINUTE, rest[1])
    answers(engine, ids, expected)
    compact(engine)
    answers(engine, ids, expected)
    assert sum(counts(engine)) == len(expected)


def _ids(engine: Engine) -> list[int]:
    with sql.reading(engine) as conn:
        known = sorted(conn.execute(sa.select(tables.targets.c.id)).scalars())
    return known or [target(engine, name) for name in ("sw1", "sw2")]


def _crash(engine: Engine, now_ms: int, at: int) -> None:
    """Run a compaction that dies after the rows are taken, the blocks written, or all is done."""
    places: list[tuple[object, str]] = [
        (compaction, "_join"),
        (blocks, "write"),
        (rollups, "remake"),
    ]
    place, name = places[at]
    original: Callable[..., object] = getattr(place, name)

    def dies(*words: object) -> object:
        if at:
            original(*words)
        raise Crash

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(place, name, dies)
        try:
            compact(engine, now_ms)
        except Crash:
            return


def test_the_newest_poll_of_a_target_stays_fresh(engine: Engine) -> None:
    """A look at the last values finds it where it was; the others are in blocks."""
    one = target(engine, "sw1")
    write(engine, *(poll(one, START + n * MINUTE, n) for n in range(100)))
    done = compact(engine)
    assert (done.polls, done.blocks, done.is_complete) == (99, 2, True)
    assert counts(engine) == (1, 99)
    assert stored_readings.latest(engine, [one])[one].readings.values[0] == 99
    assert compact(engine).polls == 0


def test_polls_of_this_hour_stay_fresh(engine: Engine) -> None:
    """Only polls of a target's past hour are moved, and those not before five minutes later."""
    write(engine, *(poll(6, 20_000 * DAY + n * MINUTE) for n in range(120)))
    assert compact(engine, 20_000 * DAY + HOUR + 4 * MINUTE).polls == 0
    assert compact(engine, 20_000 * DAY + HOUR + 6 * MINUTE).polls == 60


def test_a_run_that_is_out_of_time_goes_on_later(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was moved stays moved; the next run does the rest."""
    monkeypatch.setattr(compaction, "CHUNK_POSTGRESQL", compaction.CHUNK)
    write(engine, *(poll(n, START + m * MINUTE) for n in range(1, 12) for m in range(3)))
    stopped = compaction.compact(engine, NOW, lambda _: None, time.monotonic())
    assert (stopped.polls, stopped.is_complete) == (0, False)
    rests: list[float] = []
    done = compaction.compact(engine, NOW, rests.append, time.monotonic() + 60)
    assert (done.polls, done.is_complete) == (22, True)
    assert len(rests) == 3
    assert all(rest > 0 for rest in rests)


def test_a_long_backlog_is_moved_in_bounded_steps(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A target with very many polls is taken several times in one run."""
    monkeypatch.setattr(compaction, "MOST_POLLS", 50)
    moved: list[int] = []
    step = compaction.step

    def counted(*words: object) -> compaction.Moved:
        moved.append(step(*words).polls)  # type: ignore[arg-type]
        return compaction.Moved(moved[-1], 0)

    monkeypatch.setattr(compaction, "step", counted)
    write(engine, *(poll(1, START + n * MINUTE) for n in range(300)))
    assert compact(engine).polls == 299
    assert moved == [50, 50, 50, 50, 50, 49]


def test_a_damaged_block_does_not_hold_up_other_targets(engine: Engine) -> None:
    """It is named, its polls stay where they are, and a reader says what is wrong."""
    for number in (1, 2):
        write(engine, *(poll(number, START + n * MINUTE) for n in range(5)))
    compact(engine)
    with sql.writing(engine) as conn:
        own = tables.history_blocks.c.target_id == 1
        conn.execute(sa.update(tables.history_blocks).where(own).values(data=b"\x01nonsense"))
    for number in (1, 2):
        write(engine, *(poll(number, START + n * MINUTE) for n in range(5, 9)))
    done = compact(engine)
    assert (done.damaged, done.polls, done.is_complete) == ([1], 4, True)
    assert "target 1" in done.fault
    with pytest.raises(errors.StoreError, match="history of target 1"):
        polls_of_span.between(engine, 1, 0, 2**62)
    assert len(polls_of_span.between(engine, 2, 0, 2**62)) == 9


def test_a_backlog_of_a_damaged_target_holds_up_no_other(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its polls stay, more than one step moves; a target that is not polled any more is beside it.

    The run still comes to the targets behind, and to its end.
    """
    monkeypatch.setattr(compaction, "LOOK", 2)
    monkeypatch.setattr(compaction, "MOST_POLLS", 3)
    write(engine, *(poll(1, START + n * MINUTE) for n in range(5)))
    compact(engine)
    with sql.writing(engine) as conn:
        own = tables.history_blocks.c.target_id == 1
        conn.execute(sa.update(tables.history_blocks).where(own).values(data=b"\x01nonsense"))
    write(engine, *(poll(1, START + n * MINUTE) for n in range(5, 15)))
    write(engine, poll(2, START))
    write(engine, *(poll(3, START + n * MINUTE) for n in range(5)))

    started_mono = time.monotonic()
    done = compaction.compact(engine, NOW, lambda _: None, started_mono + 5)
    assert (done.damaged, done.is_complete) == ([1], True)
    assert len(polls_of_span.between(engine, 3, 0, 2**62)) == 5
    assert done.polls == 4


def test_a_target_with_one_poll_only_takes_no_step(engine: Engine) -> None:
    """The newest poll stays, so a device that is gone for days is nothing to move."""
    write(engine, poll(1, START))
    found = compaction.walk(engine, 0, 10, NOW)
    assert (found.due, found.last) == ([], None)


def test_kill_9_in_the_middle_loses_and_doubles_nothing(engine: Engine) -> None:
    """A process that is killed while it compacts leaves every poll in exactly one place."""
    ids = range(1, 101)
    write(engine, *(poll(n, START + m * MINUTE, m) for n in ids for m in range(30)))
    url = engine.url.render_as_string(hide_password=False)
    process = subprocess.Popen(
        [sys.executable, "-c", _COMPACT, url, str(NOW)], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()  # one step is done, others follow
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    fresh, moved = counts(engine)
    assert fresh + moved == 100 * 30
    assert 0 < moved < 100 * 29
    compact(engine)
    assert counts(engine) == (100, 100 * 29)
    for number in (1, 100):
        found = polls_of_span.between(engine, number, 0, 2**62)
        assert [stored.readings.values[0] for stored in found] == list(range(30))


_COMPACT = """
import sys, time
from poller.db import engine as sql
from poller.db.history import compaction

def rest(_seconds):
    print("a step", flush=True)
    time.sleep(0.02)

compaction.compact(sql.create(sys.argv[1]), int(sys.argv[2]), rest, time.monotonic() + 60)
"""


def test_two_runs_at_once_move_every_poll_once(engine: Engine) -> None:
    """A run whose lease was lost may still work when another begins."""
    ids = range(1, 31)
    write(engine, *(poll(n, START + m * MINUTE, m) for n in ids for m in range(20)))
    others = [threading.Thread(target=compact, args=(engine,)) for _ in range(3)]
    for other in others:
        other.start()
    for other in others:
        other.join()
    assert counts(engine) == (30, 30 * 19)


def test_partitions_are_made_ahead_and_dropped_whole(engine: Engine) -> None:
    """PostgreSQL has one for each day; blocks go there, and SQLite has none."""
    is_partitioned = engine.dialect.name == "postgresql"
    write(engine, *(poll(1, START + m * MINUTE, m) for m in range(90)))
    days = 5 if is_partitioned else 0  # 23:20, two days of now, two ahead; plain rows too
    assert partitions.prepare(engine, NOW) == 2 * days + 2 * is_partitioned
    assert partitions.prepare(engine, NOW) == 0
    compact(engine)
    midnight = 20_000 * DAY
    assert partitions.drop_before(engine, tables.history_blocks, midnight - 1) == 0
    assert len(polls_of_span.between(engine, 1, 0, 2**62)) == 90
    if is_partitioned:
        assert partitions.drop_before(engine, tables.history_blocks, midnight) == 1
        assert len(polls_of_span.between(engine, 1, 0, 2**62)) == 50
        with sql.reading(engine) as conn:
            left = conn.execute(sa.text("SELECT count(*) FROM history_blocks_default")).scalar()
        assert left == 0


def test_a_block_without_a_partition_is_stored_all_the_same(engine: Engine) -> None:
    """The default partition takes it; a partition of its day is then not made."""
    write(engine, *(poll(1, START + m * MINUTE, m) for m in range(90)))
    compact(engine)
    partitions.prepare(engine, NOW)
    write(engine, *(poll(1, START + m * MINUTE, m) for m in range(90, 95)))
    compact(engine)
    assert len(polls_of_span.between(engine, 1, 0, 2**62)) == 95
