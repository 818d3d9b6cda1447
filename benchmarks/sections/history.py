"""What does history take: bytes a sample in blocks and on disk, and CPU of compaction a poll?"""

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

from benchmarks import agents, believable_day, cpu, progress
from benchmarks.believable_day import Day
from benchmarks.databases import databases
from benchmarks.section import Figure, Findings, Section
from benchmarks.sink_polls import polled
from benchmarks.stage import Stage
from poller import errors
from poller.db import engine as sql
from poller.db import migrate
from poller.db.history import blocks, compaction, partitions, polls_of_span
from poller.db.record.stored_readings import Stored, Writer
from poller.db.tables import history_blocks
from poller.domain.history import block_codec
from poller.domain.metrics.reading import ReadingSet, pack, unpack

#: 00:00 UTC of a day.
START_MS = 1_760_054_400_000
_HOUR_MS = 3_600_000
#: The run of `compact-history` comes every ten minutes.
_RUN_MS = 600_000


@dataclass(frozen=True, slots=True)
class Size:
    devices: int
    hours: int


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
    "transaction": "begin and commit",
}


def run(size: Size, stage: Stage) -> Findings:
    shape_of = polled(agents.devices(1)[0])
    first, series = list(shape_of.values), shape_of.series
    days = [
        believable_day.day(series, first, START_MS, seed, size.hours * 60)
        for seed in range(size.devices)
    ]
    figures: list[Figure] = []
    with databases(stage, "history") as urls:
        for url, pid in urls:
            figures += _figures(url, pid, days, size)
    samples = len(series.series)
    note = (
        f"{size.devices} devices, {size.hours} h of if_mib at 60 s, {samples} samples a poll, "
        f"{believable_day.BUSY_PORTS} busy ports each"
    )
    return Findings(figures, notes=[note])


def _figures(url: str, pid: int | None, days: list[Day], size: Size) -> Iterator[Figure]:
    engine = sql.create(url)
    name = engine.dialect.name
    migrate.upgrade(engine)
    writer = Writer(engine)
    watch = Stopwatch()
    longest_s = server_s = 0.0
    with progress.shown(f"{name}, {size.hours} h", size.hours * 6) as show:
        for turn in range(size.hours * 6 + 7):
            now_ms = START_MS + (turn + 1) * _RUN_MS
            _write(writer, days, turn)
            began_s = cpu.tree_s(pid) if pid else 0.0
            longest_s = max(longest_s, _compact(engine, watch, now_ms))
            server_s += cpu.tree_s(pid) - began_s if pid else 0.0
            show(turn)
    moved = _stored_polls(engine)
    samples = moved * len(days[0].shape.series)
    encoded, on_disk, whole = _sizes(engine)
    yield Figure(f"{name}_encoded", f"{name}, a block", encoded / samples, "B/sample", at_most=1.0)
    yield Figure(
        f"{name}_disk", f"{name}, on disk with index", on_disk / samples, "B/sample", at_most=1.5
    )
    yield Figure(f"{name}_whole", f"{name}, all of the database", whole / samples, "B/sample")
    for part, text in TEXTS.items():
        yield Figure(
            f"{name}_{part}_us", f"{name}, {text}", watch.seconds[part] / moved * 1e6, "us CPU/poll"
        )
    ours_s = sum(watch.seconds.values())
    if pid:
        yield Figure(
            f"{name}_server_us", f"{name}, the server", server_s / moved * 1e6, "us CPU/poll"
        )
    total = (ours_s + server_s) / moved * 1e6
    yield Figure(f"{name}_total_us", f"{name}, all of a compaction", total, "us CPU/poll", below=50)
    yield Figure(f"{name}_longest_ms", f"{name}, longest transaction", longest_s * 1000, "ms")
    _check(engine, days)
    engine.dispose()


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


SECTION = Section(
    asks="how many bytes does a sample of history take, and what does compaction cost?",
    sizes={"full": Size(200, 24), "small": Size(100, 3), "tiny": Size(4, 2)},
    run=run,
)
