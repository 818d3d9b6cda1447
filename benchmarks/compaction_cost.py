"""Compaction of polls that are written as workers do: bytes of blocks, and CPU a poll.

Every bit of the history is compared with what was polled.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from benchmarks import cpu, progress
from benchmarks.believable_day import Day
from benchmarks.section import Figure
from poller import errors
from poller.db import engine as sql
from poller.db.history import blocks, compaction, partitions, polls_of_span
from poller.db.record.stored_readings import Stored, Writer
from poller.db.tables import history_blocks
from poller.domain.history import block_codec
from poller.domain.metrics.reading import ReadingSet, pack, unpack

#: 00:00 UTC of a day.
START_MS = 1_760_054_400_000
#: The run of `compact-history` comes every ten minutes.
_RUN_MS = 600_000


class Stopwatch:
    """CPU time of this process in functions of the compaction, those within them left out."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._inner_s = 0.0

    def timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*words: Any, **named: Any) -> Any:
            outer_s, self._inner_s = self._inner_s, 0.0
            began_s = time.process_time()
            try:
                return function(*words, **named)
            finally:
                took_s = time.process_time() - began_s
                self.seconds[name] = self.seconds.get(name, 0.0) + took_s - self._inner_s
                self._inner_s = outer_s + took_s

        return call


#: The parts of a step: where the function is, its name, and what it does.
PARTS = (
    (compaction, "walk", "look"),
    (compaction, "_take", "take"),
    (compaction, "_join", "join"),
    (block_codec, "encode", "encode"),
    (blocks, "write", "write"),
    (compaction, "step", "transaction"),
)
TEXTS = {
    "look": "find targets with settled polls",
    "take": "read and delete rows",
    "join": "join rows with blocks",
    "encode": "encode blocks",
    "write": "write blocks",
    "transaction": "begin, mark days and commit",
}


@dataclass(frozen=True, slots=True)
class Compaction:
    """What a compaction of some polls took."""

    figures: list[Figure]
    polls: int
    disk_bytes: int  # of blocks, with their index

    @property
    def total_us(self) -> float:
        """CPU of all of it, of the server too, a poll."""
        return next(each.value or 0.0 for each in self.figures if each.name.endswith("_total_us"))


def compacted(engine: Engine, pid: int | None, days: list[Day]) -> Compaction:
    """Store the polls of days as workers do, run the job every ten minutes, and measure it.

    Raises StoreConflict if the history is not what was polled.
    """
    name = engine.dialect.name
    writer = Writer(engine)
    watch = Stopwatch()
    longest_s = server_s = 0.0
    turns = -(-max(len(day.at_ms) for day in days) // 10)
    with progress.shown(f"{name}, polls of {turns // 6} h", turns) as show:
        for turn in range(turns + 7):
            now_ms = START_MS + (turn + 1) * _RUN_MS
            _write(writer, days, turn)
            began_s = cpu.tree_s(pid) if pid else 0.0
            longest_s = max(longest_s, _compact(engine, watch, now_ms))
            server_s += cpu.tree_s(pid) - began_s if pid else 0.0
            show(turn)
    _check(engine, days)
    moved = _stored_polls(engine)
    samples = moved * len(days[0].shape)
    encoded, on_disk, whole = _sizes(engine)
    figures = [
        Figure(f"{name}_encoded", f"{name}, a block", encoded / samples, "B/sample", at_most=1.0),
        Figure(
            f"{name}_disk",
            f"{name}, on disk with index",
            on_disk / samples,
            "B/sample",
            at_most=1.5,
        ),
        Figure(f"{name}_whole", f"{name}, all of the database", whole / samples, "B/sample"),
        *_costs(name, watch, server_s if pid else None, moved),
        Figure(f"{name}_longest_ms", f"{name}, longest transaction", longest_s * 1000, "ms"),
    ]
    return Compaction(figures, moved, on_disk)


def _costs(name: str, watch: Stopwatch, server_s: float | None, moved: int) -> Iterator[Figure]:
    for part, text in TEXTS.items():
        took_us = watch.seconds[part] / moved * 1e6
        yield Figure(f"{name}_{part}_us", f"{name}, {text}", took_us, "us CPU/poll")
    if server_s is not None:
        took_us = server_s / moved * 1e6
        yield Figure(f"{name}_server_us", f"{name}, the server", took_us, "us CPU/poll")
    total = (sum(watch.seconds.values()) + (server_s or 0.0)) / moved * 1e6
    yield Figure(f"{name}_total_us", f"{name}, all of a compaction", total, "us CPU/poll", below=50)


def _write(writer: Writer, days: list[Day], turn: int) -> None:
    """Store ten minutes of polls, a round of all devices at a time, as a worker does."""
    for number in range(turn * 10, turn * 10 + 10):
        batch = []
        for target_id, day in enumerate(days, 1):
            if number < len(day.at_ms):
                values = array("d", day.values[:, number])
                at_ms = int(day.at_ms[number])
                batch.append(Stored(target_id, at_ms, ReadingSet(day.shape, values)))
        if batch:
            writer.write(batch, START_MS)


def _compact(engine: Engine, watch: Stopwatch, now_ms: int) -> float:
    """Run the job once. Returns the duration of the longest transaction."""
    rests = [0.0]
    partitions.prepare(engine, now_ms)
    with ExitStack() as patches:
        for place, function, name in PARTS:
            timed = watch.timed(name, getattr(place, function))
            patches.enter_context(mock.patch.object(place, function, timed))
        compaction.compact(engine, now_ms, rests.append, time.monotonic() + 600)
    return max(rests)


def _stored_polls(engine: Engine) -> int:
    with sql.single_read(engine) as conn:
        return int(conn.execute(sa.select(sa.func.sum(history_blocks.c.polls))).scalar_one())


def _sizes(engine: Engine) -> tuple[int, int, int]:
    """Bytes of all blocks, of their table with index, and of the database."""
    with sql.single_read(engine) as conn:
        length = sa.func.sum(sa.func.length(history_blocks.c.data))
        encoded = int(conn.execute(sa.select(length)).scalar_one())
        if engine.dialect.name == "postgresql":
            disk = conn.execute(sa.text(_POSTGRESQL_DISK)).scalar_one()
            whole = conn.execute(sa.text("SELECT pg_database_size(current_database())"))
            return encoded, int(disk), int(whole.scalar_one())
        disk = conn.execute(sa.text(_SQLITE_DISK)).scalar_one()
        return encoded, int(disk), Path(engine.url.database or "").stat().st_size


_POSTGRESQL_DISK = """SELECT sum(pg_total_relation_size(inhrelid))
    FROM pg_inherits WHERE inhparent = 'history_blocks'::regclass"""
_SQLITE_DISK = """SELECT sum(pgsize) FROM dbstat WHERE name IN
    (SELECT name FROM sqlite_master WHERE tbl_name = 'history_blocks')"""


def _check(engine: Engine, days: list[Day]) -> None:
    """Compare every bit of every poll with what was polled. Raises StoreConflict."""
    for target_id, day in enumerate(days, 1):
        found = polls_of_span.between(engine, target_id, 0, 2**62, 10**6)
        stored = [(each.at_ms, pack(each.readings.values)) for each in found]
        made = {poll.at_ms: pack(unpack(poll.packed)) for poll in reversed(list(day.polls()))}
        if stored != sorted(made.items()):
            raise errors.StoreConflict(f"the history of device {target_id} is not what was polled")
