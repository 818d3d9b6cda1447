"""SQL stores readings bit by bit, and a batch that is written twice once."""

from __future__ import annotations

import math
import struct
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller import errors
from poller.db import engine as sql
from poller.db import tables
from poller.db.history import polls_of_span
from poller.db.inventory import devices, targets
from poller.db.record import stored_rates, stored_readings
from poller.db.record.stored_readings import ANNOUNCE_AGAIN_MS, Stored, Writer
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.inventory.poll_target import PollTarget
from poller.domain.metrics.reading import Kind, Reading, ReadingSet
from poller.sinks.api import Sample, Sink, Stores
from poller.sinks.sql import SqlSink

NOW_MS = 1_700_000_000_000


def reading_set(*values: float, name: str = "if_octets") -> ReadingSet:
    return ReadingSet.of(
        Reading(name, value, {"if": str(number), "alias": 'naïve "x"'}, Kind.COUNTER)
        for number, value in enumerate(values)
    )


def target(engine: Engine, name: str = "sw1") -> int:
    devices.add(engine, DeviceDraft(name, address="192.0.2.1"), [TargetDraft(collector="snmp")])
    return targets.show(engine, name, "snmp").id


def shapes(engine: Engine) -> list[int]:
    with sql.reading(engine) as conn:
        return list(conn.execute(sa.select(tables.series_sets.c.seen_ms)).scalars())


def test_values_come_back_bit_by_bit(engine: Engine) -> None:
    """Values survive bit by bit, also those that plain text would lose."""
    key = target(engine)
    values = [0.0, -0.0, 2.0**53 + 2, 1e-310, math.inf, math.nan, 0.1]
    Writer(engine).write([Stored(key, 5, reading_set(*values))], NOW_MS)
    found = stored_readings.latest(engine, [key])[key]
    assert (found.at_ms, found.readings.series) == (5, reading_set(*values).series)
    assert struct.pack("7d", *found.readings.values) == struct.pack("7d", *values)


def test_the_latest_readings_of_each_target(engine: Engine) -> None:
    """The latest readings are one row per target; a target without readings is missing."""
    one, two, silent = (target(engine, name) for name in ("a", "b", "c"))
    batch = [Stored(one, at, reading_set(at)) for at in (1, 3, 2)] + [
        Stored(two, 9, reading_set(4, 5))
    ]
    Writer(engine).write(batch, NOW_MS)
    found = stored_readings.latest(engine, [one, two, silent])
    assert {key: stored.at_ms for key, stored in found.items()} == {one: 3, two: 9}
    assert [r.value for r in found[two].readings] == [4, 5]


def test_a_span_of_time_is_half_open_and_in_order(engine: Engine) -> None:
    """A span includes its start and excludes its end, oldest poll first."""
    Writer(engine).write([Stored(1, at, reading_set(at)) for at in (30, 10, 20, 40)], NOW_MS)
    assert [stored.at_ms for stored in polls_of_span.between(engine, 1, 10, 40)] == [10, 20, 30]
    assert [stored.at_ms for stored in polls_of_span.between(engine, 1, 0, 99, limit=2)] == [
        10,
        20,
    ]


def test_the_newest_polls_of_several_targets_in_one_query(engine: Engine) -> None:
    """Each target has its newest polls up to the limit, oldest first; a target without readings is
    missing.
    """
    one, two, silent = (target(engine, name) for name in ("a", "b", "c"))
    batch = [Stored(one, at, reading_set(at)) for at in range(10, 60, 10)] + [
        Stored(two, 7, reading_set(7))
    ]
    Writer(engine).write(batch, NOW_MS)

    def history(polls: int, since_ms: int = 0) -> dict[int, list[int]]:
        found = polls_of_span.newest(engine, [one, two, silent], polls, since_ms)
        return {key: [stored.at_ms for stored in each] for key, each in found.items()}

    assert history(2) == {one: [40, 50], two: [7]}
    assert history(99) == {one: [10, 20, 30, 40, 50], two: [7]}


def test_a_span_comes_with_the_poll_before_it(engine: Engine) -> None:
    """A span includes the poll before it for its first rate, and the newest polls if there are too
    many.
    """
    one, two = target(engine, "a"), target(engine, "b")
    Writer(engine).write([Stored(one, at, reading_set(at)) for at in range(10, 60, 10)], NOW_MS)
    Writer(engine).write([Stored(two, 7, reading_set(7))], NOW_MS)

    def history(polls: int, since_ms: int) -> list[int]:
        return [
            stored.at_ms
            for stored in polls_of_span.newest(engine, [one], polls, since_ms).get(one, [])
        ]

    assert history(99, 30) == [20, 30, 40, 50]
    assert history(99, 35) == [30, 40, 50]
    assert history(99, 5) == [10, 20, 30, 40, 50]
    assert history(2, 20) == [40, 50]
    assert history(99, 99) == [50]


def test_a_span_reads_by_key_in_three_statements(engine: Engine) -> None:
    """A statement each for polls, blocks and shapes reads a span, each by a seek in the key."""
    one = target(engine, "a")
    Writer(engine).write([Stored(one, at, reading_set(at)) for at in range(3)], NOW_MS)
    asked: list[tuple[str, tuple[Any, ...]]] = []
    sa.event.listen(engine, "before_cursor_execute", lambda *words: asked.append(words[2:4]))
    polls_of_span.newest(engine, [one], 2, 1)
    statements = [each for each in asked if each[0].lstrip().upper().startswith("SELECT")]
    assert len(statements) == 3
    if engine.dialect.name == "sqlite":  # which tells the plan of an empty table, too
        with sql.reading(engine) as conn:
            steps = []
            for text, values in statements:
                plan = conn.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}", values)
                steps += [row[3] for row in plan]
        tables_read = ("SCAN readings", "SCAN history_blocks", "SCAN series_sets")
        assert not [step for step in steps if step.startswith(tables_read)], steps


def test_the_width_of_a_counter_survives(engine: Engine) -> None:
    """A counter's width is stored with its shape, and a shape without widths keeps its former
    id.
    """
    key = target(engine)
    known = ReadingSet.of(
        [
            Reading("a", 1, {}, Kind.COUNTER, 32),
            Reading("b", 2, {}, Kind.COUNTER, 64),
            Reading("c", 3),
        ]
    )
    Writer(engine).write([Stored(key, 1, known), Stored(key, 2, reading_set(1, 2))], NOW_MS)
    first, second = polls_of_span.newest(engine, [key], 9)[key]
    assert [series.width for series in first.readings.series.series] == [32, 64, 0]
    assert first.readings.series.id == known.series.id
    assert [series.width for series in second.readings.series.series] == [0, 0]


def test_writing_a_batch_twice_stores_it_once(engine: Engine) -> None:
    """The first of two equal batches stays."""
    Writer(engine).write([Stored(1, 10, reading_set(1))], NOW_MS)
    Writer(engine).write([Stored(1, 10, reading_set(2)), Stored(1, 20, reading_set(3))], NOW_MS)
    assert [list(stored.readings.values) for stored in polls_of_span.between(engine, 1, 0, 99)] == [
        [1],
        [3],
    ]


def test_a_shape_is_stored_once_and_announced_again_after_hours(engine: Engine) -> None:
    """A shape in use is stamped again after hours, so that retention can tell it from an unused
    one.
    """
    writer = Writer(engine)
    writer.write([Stored(key, 1, reading_set(1, 2)) for key in range(64)], NOW_MS)
    assert shapes(engine) == [NOW_MS]
    writer.write([Stored(1, 2, reading_set(1, 2))], NOW_MS + 1_000)
    assert shapes(engine) == [NOW_MS]
    writer.write([Stored(1, 3, reading_set(1, 2))], NOW_MS + ANNOUNCE_AGAIN_MS)
    assert shapes(engine) == [NOW_MS + ANNOUNCE_AGAIN_MS]


def test_a_shape_of_a_failed_batch_is_stored_with_the_next(engine: Engine) -> None:
    """A shape whose transaction was rolled back does not count as stored."""
    writer = Writer(engine)
    with sql.writing(engine) as conn:
        conn.exec_driver_sql("ALTER TABLE readings RENAME TO hidden")
    with pytest.raises(errors.PollerError):
        writer.write([Stored(1, 1, reading_set(1))], NOW_MS)
    with sql.writing(engine) as conn:
        conn.exec_driver_sql("ALTER TABLE hidden RENAME TO readings")
    assert shapes(engine) == []
    writer.write([Stored(1, 1, reading_set(1))], NOW_MS)
    assert shapes(engine) == [NOW_MS]


def test_the_sql_sink_keeps_the_sink_contract(engine: Engine) -> None:
    """The SQL sink passes the sink contract, and its readings can be read back."""
    sink = SqlSink(Stores(engine, None, None))
    assert isinstance(sink, Sink)
    polled = PollTarget(7, 1, "snmp", 1, "sw1", "192.0.2.1", "", "snmp", 60_000, 5_000)
    sink.write(
        [Sample(polled, 10, reading_set(1, 2)), Sample(polled, 20, reading_set(3, name="up"))]
    )
    sink.write([])
    sink.close()
    assert [list(stored.readings.values) for stored in polls_of_span.between(engine, 7, 0, 99)] == [
        [1, 2],
        [3],
    ]


def test_the_rates_of_a_device_with_several_targets_come_a_page_at_a_time(engine: Engine) -> None:
    """Pages of rates cross the targets of a device without a repeated or missing line."""
    drafts = [TargetDraft(name, "snmp") for name in ("a", "b", "c")]
    devices.add(engine, DeviceDraft("sw1", address="192.0.2.1"), drafts)
    for number, each in enumerate(targets.of_device(engine, "sw1")):
        metrics = ReadingSet.of(Reading(f"m{number}{n}", 5, {}, Kind.COUNTER) for n in range(3))
        Writer(engine).write([Stored(each.id, 60_000 * at, metrics) for at in range(3)], NOW_MS)

    def page(skip: int, most: int) -> list[str]:
        found = stored_rates.of_device(
            engine, "sw1", stored_rates.RatesRequest(limit=most, offset=skip)
        )
        assert sum(each.result.total for each in found) == 9
        return [line.series.name for each in found for line in each.result.lines]

    assert page(0, 99) == [f"m{number}{n}" for number in range(3) for n in range(3)]
    assert [name for skip in (0, 4, 8) for name in page(skip, 4)] == page(0, 99)
    with pytest.raises(errors.NotFound):
        stored_rates.of_device(engine, "sw9", stored_rates.RatesRequest())
