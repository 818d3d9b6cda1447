"""What does it cost to store a round of 64 polls: alone, concurrently, and during an outage?"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from benchmarks import progress
from benchmarks.databases import databases
from benchmarks.section import Figure, Findings, Section
from benchmarks.stage import Stage
from poller import errors
from poller.db import engine as sql
from poller.db import migrate
from poller.db.record import run_ledger
from poller.db.tables import readings as readings_table
from poller.db.tables import runs as runs_table
from poller.domain.failures.outcome import Result
from poller.domain.inventory.poll_target import PollTarget
from poller.domain.metrics.reading import Kind, ReadingSet, Series, SeriesSet
from poller.domain.record.run import Run
from poller.observability import logs
from poller.settings import Settings
from poller.sinks.api import Sample, Stores
from poller.sinks.made_sink import MadeSink
from poller.sinks.sql import SqlSink
from poller.workers.results.writers import Writers

POLLS, VALUES, THREADS = 64, 160, 16
SHAPE = SeriesSet(
    tuple(Series(f"metric_{n}", (("if", str(n)),), Kind.COUNTER) for n in range(VALUES))
)

Round = tuple[Sequence[Sample], Sequence[Run]]
Store = Callable[[Sequence[Sample], Sequence[Run]], None]


@dataclass(frozen=True, slots=True)
class Size:
    rounds: int  # per thread
    repeats: int  # the median counts


class Sink(SqlSink):
    """The built-in sink, with an outage that can be switched on."""

    away = False

    def write(self, samples: Sequence[Sample]) -> None:
        if self.away:
            raise errors.StoreUnavailable("away")
        super().write(samples)


def run(size: Size, stage: Stage) -> Findings:
    logs.configure("ERROR")
    figures: list[Figure] = []
    with databases(stage, "writing") as urls:
        for number, (url, _) in enumerate(urls):
            figures += _figures(url, size, stage, f"worker{number}@bench")
    return Findings(
        figures, notes=[f"rounds of {POLLS} runs and {POLLS} readings of {VALUES} values"]
    )


def _figures(url: str, size: Size, stage: Stage, runner: str) -> Iterator[Figure]:
    engine = sql.create(url)
    name = engine.dialect.name
    migrate.upgrade(engine)
    sink = Sink(Stores(engine, None, None))
    patient = Settings(home=stage.home, lease_margin_s=300.0, spool_patience_s=30.0)
    writing = Writers(engine, [MadeSink("sql", "sql", sink)], patient, runner)
    ways: dict[str, Store] = {"": _by_writers(writing), "_direct": _direct(engine, sink)}
    clock = _Clock()
    for threads, where in ((1, "alone"), (THREADS, f"beside {THREADS - 1} others")):
        costs: dict[str, list[float]] = {way: [] for way in ways}
        with progress.shown(f"{name}, {where}", size.repeats) as show:
            for number in range(size.repeats):  # in turns, so that other load affects both
                for way, store in ways.items():
                    costs[way].append(_cpu_ms(store, clock, threads, size.rounds))
                show(number)
        for way, text in (("", "with a writer"), ("_direct", "each thread for itself")):
            figure = f"{name}_{threads}{way}_cpu_ms"
            yield Figure(
                figure,
                f"{name}, {where}, {text}",
                sorted(costs[way])[size.repeats // 2],
                "ms CPU/round",
            )
    _all_there(engine, clock)
    yield from _outage(name, writing, sink, clock, size.rounds, stage)
    writing.close(5)
    _all_there(engine, clock)
    engine.dispose()


def _outage(
    name: str, writing: Writers, sink: Sink, clock: _Clock, rounds: int, stage: Stage
) -> Iterator[Figure]:
    """Measure an outage of the sink and its return."""
    sink.away = True
    cost = _cpu_ms(_by_writers(writing), clock, 1, rounds * THREADS)
    waiting = writing.waiting
    files = list((stage.home / "spool").glob("*/sink-sql/*.rounds"))
    yield Figure(f"{name}_down_cpu_ms", f"{name}, while the sink is down", cost, "ms CPU/round")
    yield Figure(
        f"{name}_down_bytes",
        "on disk",
        sum(f.stat().st_size for f in files) / waiting,
        "bytes/poll",
    )
    sink.away = False
    while writing.waiting == waiting:  # until the next retry
        time.sleep(0.001)
    began, cpu, left = time.perf_counter(), time.process_time(), writing.waiting
    while writing.waiting:
        time.sleep(0.001)
    took, used = time.perf_counter() - began, time.process_time() - cpu
    if left:  # more than the first transaction holds
        yield Figure(f"{name}_caught_up_per_s", f"{name}, catching up", left / took, "polls/s")
        yield Figure(
            f"{name}_caught_up_cpu_ms", "the same", used * 1000 * POLLS / left, "ms CPU/round"
        )


def _by_writers(writing: Writers) -> Store:
    def store(samples: Sequence[Sample], rows: Sequence[Run]) -> None:
        writing.write_readings(samples)
        writing.write_rows(rows)

    return store


def _direct(engine: Engine, sink: Sink) -> Store:
    """Store without writers: every thread has its own transactions."""

    def store(samples: Sequence[Sample], rows: Sequence[Run]) -> None:
        sink.write(samples)
        run_ledger.write(engine, rows)

    return store


class _Clock:
    """A clock that returns another instant for each round."""

    def __init__(self) -> None:
        self.now_ms = 1_700_000_000_000
        self.rounds = 0

    def round(self) -> Round:
        self.now_ms += 1_000
        self.rounds += 1
        return _round(self.now_ms)


def _round(at_ms: int) -> Round:
    targets = [
        PollTarget(n, 1, "snmp", n, f"d{n}", "127.0.0.1", "", "snmp", 60_000, 5_000)
        for n in range(POLLS)
    ]
    samples = [
        Sample(t, at_ms, ReadingSet(SHAPE, [float(at_ms + n) for n in range(VALUES)]))
        for t in targets
    ]
    rows = [
        Run(t.id, at_ms, Result.OK, 1, "", "", at_ms, at_ms + 40, VALUES, "w@bench", f"{at_ms:x}")
        for t in targets
    ]
    return samples, rows


def _cpu_ms(store: Store, clock: _Clock, threads: int, rounds: int) -> float:
    """Return the CPU time of this process per round."""
    work = [[clock.round() for _ in range(rounds)] for _ in range(threads)]

    def go(own: Sequence[Round]) -> None:
        for samples, rows in own:
            store(samples, rows)

    pool = [threading.Thread(target=go, args=(own,)) for own in work]
    began = time.process_time()
    for thread in pool:
        thread.start()
    for thread in pool:
        thread.join()
    return (time.process_time() - began) * 1000 / (threads * rounds)


def _all_there(engine: Engine, clock: _Clock) -> None:
    """Check that all rows were written. Raises StoreConflict."""
    with sql.single_read(engine) as conn:
        for table in (runs_table, readings_table):
            stored = conn.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
            if stored != clock.rounds * POLLS:
                raise errors.StoreConflict(
                    f"{stored} rows in {table.name} of {clock.rounds * POLLS}"
                )


SECTION = Section(
    asks="what does a round cost on its way to the database?",
    sizes={"full": Size(20, 7), "small": Size(10, 3), "tiny": Size(3, 1)},
    run=run,
)
