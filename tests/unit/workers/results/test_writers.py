"""Rows reach their destinations, in order and once, or are on disk before a poll goes on."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from structlog.testing import capture_logs

from poller import errors
from poller.db.record import run_ledger
from poller.domain.failures.outcome import Result
from poller.domain.inventory.poll_target import PollTarget
from poller.domain.metrics.reading import Reading, ReadingSet
from poller.domain.record.run import Run
from poller.settings import Settings
from poller.sinks.api import Sample
from poller.workers.results import writers
from poller.workers.results.writers import Writers

#: Long enough for anything that works, short enough to wait for what does not.
PATIENCE_S = 0.6


class Store:
    """A destination that does as it is told. `rows` are what it has, by number, in order of arrival."""

    name: ClassVar[str] = "store"
    api_version: ClassVar[int] = 1

    def __init__(self) -> None:
        self.calls: list[list[int]] = []
        self.problem: Callable[[list[int]], BaseException | None] = lambda _: None
        self.open = threading.Event()  # while it is not set, nothing is answered
        self.open.set()
        self.asked = threading.Semaphore(0)

    @property
    def rows(self) -> list[int]:
        return [number for call in self.calls for number in call]

    def write(self, items: Sequence[Any]) -> None:
        found = [item.target_id if isinstance(item, Run) else item.target.id for item in items]
        self.asked.release()
        assert self.open.wait(20)
        if problem := self.problem(found):
            raise problem
        self.calls.append(found)

    def close(self) -> None: ...

    def go_away(self) -> None:
        self.problem = lambda _: errors.StoreUnavailable("away")

    def come_back(self) -> None:
        self.problem = lambda _: None


class World:
    """A ledger and one sink, and workers that write to them."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.ledger, self.sink = Store(), Store()
        self.made: list[Writers] = []

    def worker(self, name: str = "w@test", **settings: Any) -> Writers:
        chosen = Settings(home=self.home, **{"spool_patience_s": PATIENCE_S, **settings})
        self.made.append(Writers(None, [self.sink], chosen, name))  # type: ignore[arg-type, list-item]
        return self.made[-1]

    def files(self) -> list[Path]:
        return sorted(self.home.glob("spool/*/*/*.rounds"))


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    made = World(tmp_path)
    monkeypatch.setattr(run_ledger, "write", lambda _engine, rows: made.ledger.write(rows))
    monkeypatch.setattr(writers, "TRY_AGAIN_S", 0.02)
    yield made
    for store in (made.ledger, made.sink):
        store.open.set()
    for each in made.made:
        each.close(1)


def row(number: int) -> Run:
    return Run(number, 1_000, Result.OK)


def sample(number: int) -> Sample:
    target = PollTarget(number, 1, "t", 1, "d", "127.0.0.1", "", "fake", 1_000, 500)
    return Sample(target, 1_000, ReadingSet.of([Reading("polled", 1.0)]))


def store(worker: Writers, *polls: int) -> float:
    """One round; how long it took."""
    began = time.monotonic()
    worker.write_readings([sample(number) for number in polls])
    worker.write_rows([row(number) for number in polls])
    return time.monotonic() - began


def soon(condition: Callable[[], Any], within_s: float = 10.0) -> None:
    until = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < until, "it did not come true"
        time.sleep(0.005)


def test_a_healthy_store_has_the_rows_before_the_poll_goes_on(world: World) -> None:
    """And nothing touches the disk."""
    worker = world.worker()
    for number in range(5):
        store(worker, number)
        assert world.ledger.rows == world.sink.rows == list(range(number + 1))
    assert (worker.waiting, worker.dropped, world.files()) == (0, 0, [])


def test_a_round_without_readings_is_no_business_of_a_sink(world: World) -> None:
    """The ledger hears of it."""
    worker = world.worker()
    assert worker.write_readings([]) == 0
    worker.write_rows([row(1)])
    assert (world.ledger.rows, world.sink.calls) == ([1], [])


def test_rounds_that_wait_are_written_together(world: World) -> None:
    """Sixteen threads make a few transactions, not sixteen."""
    worker = world.worker(lease_margin_s=100, spool_patience_s=10)
    world.ledger.open.clear()
    threads = [threading.Thread(target=store, args=(worker, number)) for number in range(16)]
    threads[0].start()
    assert world.ledger.asked.acquire(
        timeout=10
    )  # the first is being written, the others come meanwhile
    for thread in threads[1:]:
        thread.start()
    soon(lambda: len(worker._ledger._queue) == 16)
    world.ledger.open.set()
    for thread in threads:
        thread.join(10)
    assert sorted(world.ledger.rows) == list(range(16))
    assert len(world.ledger.calls) == 2


def test_a_store_that_is_only_slow_is_waited_for(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As long as it gets on: more rows on disk would not make it faster."""
    monkeypatch.setattr(writers, "TOGETHER", 1)
    worker = world.worker(spool_patience_s=0.2)
    world.ledger.problem = world.sink.problem = lambda _: time.sleep(0.12)
    threads = [threading.Thread(target=store, args=(worker, number)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert sorted(world.ledger.rows) == sorted(world.sink.rows) == list(range(4))
    assert (worker.waiting, world.files()) == (0, [])


def test_a_store_that_is_far_too_slow_is_not_waited_for_for_ever(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A poll that cannot end would lose its lease."""
    monkeypatch.setattr(writers, "TOGETHER", 1)
    worker = world.worker(spool_patience_s=0.1)
    world.sink.problem = lambda _: time.sleep(0.08)
    began = time.monotonic()
    threads = [threading.Thread(target=store, args=(worker, number)) for number in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert time.monotonic() - began < 2.5  # all of them, one after the other, would take 3.2 s
    soon(lambda: sorted(set(world.sink.rows)) == list(range(40)))


def test_a_store_that_is_down_gets_everything_in_order_and_once(world: World) -> None:
    """What comes while it is away goes behind what waits, also while it catches up."""
    worker = world.worker()
    world.ledger.go_away()
    for number in range(20):
        assert store(worker, number) < PATIENCE_S * 0.9
    assert world.sink.rows == list(range(20))
    assert (world.ledger.rows, worker.waiting) == ([], 20)
    world.ledger.come_back()
    for number in range(20, 40):
        store(worker, number)
    soon(lambda: len(world.ledger.rows) >= 40)
    assert world.ledger.rows == list(range(40))
    soon(lambda: not world.files())
    assert (worker.waiting, worker.dropped) == (0, 0)
    store(worker, 40)
    assert world.ledger.rows[-1] == 40


def test_a_silent_store_delays_one_round_and_no_more(world: World) -> None:
    """The first poll waits for its patience; what arrives late after all is not written twice."""
    worker = world.worker()
    world.sink.open.clear()
    assert PATIENCE_S * 0.9 <= store(worker, 0) < PATIENCE_S * 3
    assert worker.waiting == 1
    for number in range(1, 20):
        assert store(worker, number) < PATIENCE_S * 0.9
    assert world.ledger.rows == list(range(20))
    world.sink.open.set()
    soon(lambda: len(world.sink.rows) >= 20)
    soon(lambda: not worker.waiting)
    assert world.sink.rows == list(range(20))


def test_who_waits_beside_a_silent_store_is_let_go_together(world: World) -> None:
    """The patience of the first ends for all."""
    worker = world.worker(spool_patience_s=0.5)
    world.sink.open.clear()
    took: list[float] = []
    threads = [threading.Thread(target=lambda n=n: took.append(store(worker, n))) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert max(took) < 1.0
    assert worker.waiting == 8


@pytest.mark.parametrize(
    "error", [errors.StoreError("bad value"), KeyError("a bug"), errors.StoreConflict("taken")]
)
def test_a_round_that_is_never_taken_is_set_aside(world: World, error: Exception) -> None:
    """Alone, and said so; those before and behind it are written, whoever wrote the sink."""
    worker = world.worker()
    world.ledger.open.clear()
    world.ledger.problem = lambda found: error if 3 in found else None
    threads = [threading.Thread(target=store, args=(worker, number)) for number in range(6)]
    with capture_logs() as said:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
        world.ledger.open.set()
        soon(lambda: len(world.ledger.rows) == 5 and not worker.waiting)
    assert sorted(world.ledger.rows) == [0, 1, 2, 4, 5]
    assert sorted(world.sink.rows) == [0, 1, 2, 3, 4, 5]
    assert worker.dropped == 1
    refused = [line for line in said if line["event"] == "round_refused"]
    assert [(line["store"], line["polls"], Path(line["kept"]).exists()) for line in refused] == [
        ("ledger", 1, True)
    ]


def test_a_conflict_that_passes_costs_nothing(world: World) -> None:
    """A deadlock is tried again before anything is set aside."""
    worker = world.worker()
    moods = iter([errors.StoreConflict("deadlock"), errors.StoreConflict("deadlock")])
    world.ledger.problem = lambda _: next(moods, None)
    store(worker, 1)
    soon(lambda: world.ledger.rows == [1])
    assert worker.dropped == 0


def test_tables_that_are_missing_are_an_outage(world: World) -> None:
    """Somebody restores the database: the rows wait for that."""
    worker = world.worker()
    world.ledger.problem = lambda _: errors.SchemaMismatch("no tables")
    store(worker, 1)
    for _ in range(10):
        assert world.ledger.asked.acquire(timeout=5)
    assert (worker.waiting, worker.dropped) == (1, 0)
    world.ledger.come_back()
    soon(lambda: world.ledger.rows == [1])


def test_who_is_killed_leaves_everything_to_the_next(world: World) -> None:
    """Nothing is closed, nothing is said; another worker finds the files, in order, and writes them."""
    first = world.worker("first@test")
    world.ledger.go_away()
    for number in range(10):
        store(first, number)
    die(first)
    world.ledger.come_back()
    world.worker("second@test").start()
    soon(lambda: len(world.ledger.rows) >= 10)
    assert world.ledger.rows == list(range(10))
    soon(lambda: not world.files())


def test_a_worker_that_stops_leaves_its_files(world: World) -> None:
    """At once when the store is down; and the next of its name goes on."""
    first = world.worker()
    world.ledger.go_away()
    store(first, 1)
    began = time.monotonic()
    first.close(5)
    assert time.monotonic() - began < 2
    assert len(world.files()) == 1
    die(first)
    world.ledger.come_back()
    second = world.worker()
    second.start()
    soon(lambda: world.ledger.rows == [1])


def test_a_worker_that_stops_writes_what_it_can(world: World) -> None:
    """It has a moment to empty its spool."""
    worker = world.worker()
    world.ledger.open.clear()
    for number in range(5):
        store(worker, number)
    assert worker.waiting == 5
    world.ledger.open.set()
    worker.close(10)
    assert world.ledger.rows == list(range(5))
    assert world.files() == []


def test_a_silent_store_does_not_hold_up_the_end(world: World) -> None:
    """The time is bounded, and the rows stay on disk."""
    worker = world.worker()
    world.ledger.open.clear()
    store(worker, 1)
    began = time.monotonic()
    worker.close(0.2)
    assert 0.1 < time.monotonic() - began < 3
    assert len(world.files()) == 1


def test_a_home_that_cannot_be_written_costs_no_poll(world: World) -> None:
    """Memory holds some; the rest is dropped and counted; nothing is raised."""
    world.home.joinpath("spool").write_text("in the way")
    worker = world.worker()
    world.ledger.go_away()
    for number in range(100):
        store(worker, *range(number * 64, number * 64 + 64))
    assert worker.dropped == 100 * 64 - 4096
    world.ledger.come_back()
    soon(lambda: not worker.waiting)
    assert world.ledger.rows == list(range(100 * 64 - 4096, 100 * 64))


def test_an_outage_is_told_when_it_begins_and_when_it_is_over(world: World) -> None:
    """With its reason, and how many polls were written late."""
    worker = world.worker()
    with capture_logs() as said:
        world.ledger.go_away()
        for number in range(30):
            store(worker, number)
        world.ledger.come_back()
        soon(lambda: any(line["event"] == "store_caught_up" for line in said))
    told = [line for line in said if line["event"] in ("store_down", "store_caught_up")]
    assert [(line["event"], line["store"]) for line in told] == [
        ("store_down", "ledger"),
        ("store_caught_up", "ledger"),
    ]
    assert (told[0]["reason"], told[1]["polls"]) == ("away", 30)


def die(worker: Writers) -> None:
    """As a process does: its threads end, and its lock is free."""
    for writer in worker._writers:
        writer.stop()
        writer._thread.join(5)
    assert worker._home._lock is not None
    os.close(worker._home._lock)
    worker._home._lock = None


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    "raised", [SystemExit(1), KeyboardInterrupt(), Unspeakable()], ids=["exit", "ctrl-c", "no text"]
)
def test_whatever_a_sink_raises_its_thread_goes_on(world: World, raised: BaseException) -> None:
    """Else nothing would be written by this worker any more, and nobody told."""
    worker = world.worker()
    first = [raised]
    world.sink.problem = lambda _: first.pop() if first else None
    store(worker, 1)
    store(worker, 2)
    soon(lambda: sorted(set(world.sink.rows)) == [1, 2])
