"""Rows reach their destinations in order and once, or are on disk before a poll goes on."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from poller import errors
from poller.sinks.api import Sample
from poller.workers.results.writers import Writers
from tests.unit.workers.results.scripted_stores import (
    PATIENCE_S,
    Store,
    World,
    row,
    sample,
    soon,
    store,
)


def test_a_healthy_store_has_the_rows_before_the_poll_goes_on(world: World) -> None:
    """No row goes to disk."""
    worker = world.worker()
    for number in range(5):
        store(worker, number)
        assert world.ledger.rows == world.sink.rows == list(range(number + 1))
    assert (worker.waiting, worker.dropped, world.files()) == (0, 0, [])


def test_a_round_without_readings_goes_to_the_ledger_only(world: World) -> None:
    """No sink is called."""
    worker = world.worker()
    assert worker.write_readings([]) == 0
    worker.write_rows([row(1)])
    assert (world.ledger.rows, world.sink.calls) == ([1], [])


def end(number: int) -> Sample:
    ended = sample(number)
    return Sample.end_of(ended.target, 2_000, ended.readings.series)


def test_only_a_sink_that_takes_ends_gets_them(world: World) -> None:
    """The other sink gets the samples of the round, and is not called for a round of ends."""
    other: Any = Store()
    other.name = "other"
    other.takes_ends = True
    worker = world.worker(more_sinks=[other])
    assert worker.take_ends
    worker.write_readings([sample(1)], [end(2)])
    worker.write_readings([], [end(3)])
    assert world.sink.calls == [[1]]
    assert other.calls == [[2, 1], [3]]


def test_ends_wait_in_the_spool_in_their_order(world: World) -> None:
    """A series that ended and came back ends before it comes back."""
    sink: Any = world.sink
    sink.takes_ends = True
    worker = world.worker()
    world.sink.go_away()
    worker.write_readings([sample(1)])
    worker.write_readings([], [end(2)])
    worker.write_readings([sample(3)])
    world.sink.come_back()
    soon(lambda: world.sink.rows == [1, 2, 3])


def test_ends_that_wait_for_a_sink_of_another_kind_are_left_out(world: World) -> None:
    """Its values are no numbers, which a sink that takes no ends would store."""
    sink: Any = world.sink
    sink.takes_ends = True
    sink.go_away()
    worker = world.worker()
    worker.write_readings([sample(1)], [end(2)])
    worker.write_readings([], [end(3)])
    die(worker)
    sink.takes_ends = False
    sink.come_back()
    again = world.worker()
    again.start()
    soon(lambda: again.waiting == 0)
    assert sink.rows == [1]


def test_waiting_rounds_are_written_together(world: World) -> None:
    """Sixteen threads cause two transactions, not sixteen."""
    worker = world.worker(lease_margin_s=100, spool_patience_s=10)
    world.ledger.open.clear()
    threads = [threading.Thread(target=store, args=(worker, number)) for number in range(16)]
    threads[0].start()
    assert world.ledger.called.acquire(timeout=10)  # the others come while the first is written
    for thread in threads[1:]:
        thread.start()
    soon(lambda: len(worker._ledger._queue) == 16)
    world.ledger.open.set()
    for thread in threads:
        thread.join(10)
    assert sorted(world.ledger.rows) == list(range(16))
    assert len(world.ledger.calls) == 2


def test_a_store_that_is_only_slow_is_waited_for(world: World) -> None:
    """A poll waits while the store writes others: rows on disk would not make it faster."""
    worker = world.worker(spool_patience_s=0.2, write_polls=1)
    world.sink.problem = lambda _: time.sleep(0.12)
    threads = [threading.Thread(target=store, args=(worker, number)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert sorted(world.ledger.rows) == sorted(world.sink.rows) == list(range(4))
    assert (worker.waiting, world.files()) == (0, [])


def test_the_wait_for_a_slow_store_is_limited(world: World) -> None:
    """A poll that waits for ever would lose its lease."""
    worker = world.worker(spool_patience_s=0.1, write_polls=1)
    world.sink.problem = lambda _: time.sleep(0.08)
    started = time.monotonic()
    threads = [threading.Thread(target=store, args=(worker, number)) for number in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert time.monotonic() - started < 2.5  # one after the other they would take 3.2 s
    soon(lambda: sorted(set(world.sink.rows)) == list(range(40)))


def test_a_store_that_was_down_gets_all_rows_in_order_and_once(world: World) -> None:
    """New rows go behind waiting ones, also while the store catches up."""
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
    """Only the first poll waits; rows that arrive late after all are not written twice."""
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


def test_all_polls_that_wait_for_a_silent_store_go_on_together(world: World) -> None:
    """They go on when the patience of the first one ends."""
    worker = world.worker(spool_patience_s=0.5)
    world.sink.open.clear()
    seconds: list[float] = []
    threads = [
        threading.Thread(target=lambda n=n: seconds.append(store(worker, n))) for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert max(seconds) < 1.0
    assert worker.waiting == 8


@pytest.mark.parametrize(
    "error", [errors.StoreError("bad value"), KeyError("a bug"), errors.StoreConflict("taken")]
)
def test_a_round_that_is_always_refused_is_set_aside(world: World, error: Exception) -> None:
    """The rounds before and after it are written, and the refusal is logged."""
    worker = world.worker()
    world.ledger.open.clear()
    world.ledger.problem = lambda numbers: error if 3 in numbers else None
    threads = [threading.Thread(target=store, args=(worker, number)) for number in range(6)]
    with capture_logs() as lines:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
        world.ledger.open.set()
        soon(lambda: len(world.ledger.rows) == 5 and not worker.waiting)
    assert sorted(world.ledger.rows) == [0, 1, 2, 4, 5]
    assert sorted(world.sink.rows) == [0, 1, 2, 3, 4, 5]
    assert worker.dropped == 1
    refused = [line for line in lines if line["event"] == "round_refused"]
    assert [(line["store"], line["polls"], Path(line["kept"]).exists()) for line in refused] == [
        ("ledger", 1, True)
    ]


def test_a_conflict_that_passes_costs_nothing(world: World) -> None:
    """A deadlock is tried again before a round is set aside."""
    worker = world.worker()
    problems = iter([errors.StoreConflict("deadlock"), errors.StoreConflict("deadlock")])
    world.ledger.problem = lambda _: next(problems, None)
    store(worker, 1)
    soon(lambda: world.ledger.rows == [1])
    assert worker.dropped == 0


def test_tables_that_are_missing_are_an_outage(world: World) -> None:
    """Rows wait until the database is restored."""
    worker = world.worker()
    world.ledger.problem = lambda _: errors.SchemaMismatch("no tables")
    store(worker, 1)
    for _ in range(10):
        assert world.ledger.called.acquire(timeout=5)
    assert (worker.waiting, worker.dropped) == (1, 0)
    world.ledger.come_back()
    soon(lambda: world.ledger.rows == [1])


def test_the_rows_of_a_killed_worker_are_written_by_another(world: World) -> None:
    """The other worker adopts the files and writes them in order."""
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
    """It stops at once while the store is down; the next worker of its name goes on."""
    first = world.worker()
    world.ledger.go_away()
    store(first, 1)
    started = time.monotonic()
    first.close(5)
    assert time.monotonic() - started < 2
    assert len(world.files()) == 1
    die(first)
    world.ledger.come_back()
    second = world.worker()
    second.start()
    soon(lambda: world.ledger.rows == [1])


def test_a_worker_that_stops_writes_what_it_can(world: World) -> None:
    """It has some time to empty its spool."""
    worker = world.worker()
    world.ledger.open.clear()
    for number in range(5):
        store(worker, number)
    assert worker.waiting == 5
    world.ledger.open.set()
    worker.close(10)
    assert world.ledger.rows == list(range(5))
    assert world.files() == []


def test_a_silent_store_does_not_delay_the_end(world: World) -> None:
    """The time is limited, and the rows stay on disk."""
    worker = world.worker()
    world.ledger.open.clear()
    store(worker, 1)
    started = time.monotonic()
    worker.close(0.2)
    assert 0.1 < time.monotonic() - started < 3
    assert len(world.files()) == 1


def test_a_home_that_cannot_be_written_costs_no_poll(world: World) -> None:
    """Memory holds some rows; the rest is dropped and counted; no error is raised."""
    world.home.joinpath("spool").write_text("in the way")
    worker = world.worker()
    world.ledger.go_away()
    for number in range(100):
        store(worker, *range(number * 64, number * 64 + 64))
    assert worker.dropped == 100 * 64 - 4096
    world.ledger.come_back()
    soon(lambda: not worker.waiting)
    assert world.ledger.rows == list(range(100 * 64 - 4096, 100 * 64))


def test_the_start_and_the_end_of_an_outage_are_logged(world: World) -> None:
    """The lines have the reason and the number of late polls."""
    worker = world.worker()
    with capture_logs() as lines:
        world.ledger.go_away()
        for number in range(30):
            store(worker, number)
        world.ledger.come_back()
        soon(lambda: any(line["event"] == "store_caught_up" for line in lines))
    outage = [line for line in lines if line["event"] in ("store_down", "store_caught_up")]
    assert [(line["event"], line["store"]) for line in outage] == [
        ("store_down", "ledger"),
        ("store_caught_up", "ledger"),
    ]
    assert (outage[0]["reason"], outage[1]["polls"]) == ("away", 30)


def die(worker: Writers) -> None:
    """End like a killed process: the threads end, and the lock is free."""
    for writer in worker._all:
        writer.stop()
        writer._thread.join(5)
    assert worker._directory._lock_file is not None
    os.close(worker._directory._lock_file)
    worker._directory._lock_file = None


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    "raised", [SystemExit(1), KeyboardInterrupt(), Unspeakable()], ids=["exit", "ctrl-c", "no text"]
)
def test_the_thread_of_a_sink_survives_every_exception(world: World, raised: BaseException) -> None:
    """Otherwise this worker would write no more rows, and no log line would say so."""
    worker = world.worker()
    first = [raised]
    world.sink.problem = lambda _: first.pop() if first else None
    store(worker, 1)
    store(worker, 2)
    soon(lambda: sorted(set(world.sink.rows)) == [1, 2])
