"""One sink in trouble delays neither polls nor other sinks, and its report says what is wrong."""

from __future__ import annotations

import time

import pytest

from poller import errors
from poller.domain.failures import delivery_backoff
from poller.domain.record.sink_report import SinkReport, SinkState
from poller.workers.results import delivery_record
from poller.workers.results.writers import Writers
from tests.unit.workers.results.scripted_stores import PATIENCE_S, World, soon, store

NOW_MS = 100_000


def report(worker: Writers, sink: int = 0) -> SinkReport:
    return worker.sink_reports(NOW_MS)[sink]


def test_a_hanging_sink_costs_one_patience_and_nothing_more(world: World) -> None:
    """The other sink and the ledger go on at full rate, however long the call hangs."""
    worker = world.worker(more_sinks=[world.second_sink])
    world.sink.open.clear()
    assert store(worker, 0) < PATIENCE_S * 1.9
    started = time.monotonic()
    for number in range(1, 201):
        store(worker, number)
    elapsed_s = time.monotonic() - started
    assert elapsed_s < 200 * 0.02  # without waits; with one each it would take two minutes
    assert world.second_sink.rows == world.ledger.rows == list(range(201))
    assert world.sink.rows == []

    world.sink.open.set()
    soon(lambda: world.sink.rows == list(range(201)))


def test_a_well_sink_is_ok_and_counts_what_it_takes(world: World) -> None:
    """Rates are over the last minute."""
    worker = world.worker()
    store(worker, 1, 2, 3)
    found = report(worker)
    assert (found.name, found.kind, found.state) == ("store", "fake", SinkState.OK)
    assert (found.polls, found.samples, found.spooled_polls, found.oldest_ms) == (3, 3, 0, 0)
    assert found.polls_per_s > 0
    assert NOW_MS - 10_000 < found.stored_ms <= NOW_MS
    assert (found.error, found.error_ms, found.retry_ms) == ("", 0, 0)


def test_a_sink_that_is_away_is_down_with_its_error_and_hint(world: World) -> None:
    """The lag is the age of the oldest poll on disk; the other sink is ok."""
    worker = world.worker(more_sinks=[world.second_sink])
    world.sink.problem = lambda _: errors.StoreUnavailable("no route", hint="start it")
    store(worker, 1, 2)
    soon(lambda: report(worker).error)
    found, other = worker.sink_reports(NOW_MS)
    assert (found.state, found.error, found.hint) == (SinkState.DOWN, "no route", "start it")
    assert (found.spooled_polls, found.oldest_ms, found.spooled_bytes > 0) == (2, 1_000, True)
    assert NOW_MS - 10_000 < found.error_ms <= NOW_MS
    assert found.stored_ms == 0
    assert other.state is SinkState.OK
    assert worker.outage == ""

    world.sink.come_back()
    soon(lambda: report(worker).state is SinkState.OK)
    found = report(worker)
    assert (found.spooled_polls, found.oldest_ms, found.retry_ms) == (0, 0, 0)
    assert found.error == "no route"


def test_a_wait_that_the_store_asks_for_is_kept(world: World) -> None:
    """`Retry-After` of a store is obeyed, and shown."""
    worker = world.worker()
    world.sink.problem = lambda _: errors.StoreUnavailable("429", retry_after_s=60)
    store(worker, 1)
    soon(lambda: report(worker).error)
    assert NOW_MS + 50_000 < report(worker).retry_ms < NOW_MS + 67_000


def test_the_pauses_of_a_dead_sink_grow(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dead sink is not asked every second by every worker."""
    asked: list[int] = []
    monkeypatch.setattr(
        delivery_backoff, "wait_s", lambda failures, *_: asked.append(failures) or 0.001
    )
    worker = world.worker()
    world.sink.go_away()
    store(worker, 1)
    soon(lambda: len(asked) > 4)
    assert asked[:4] == [1, 2, 3, 4]
    world.sink.come_back()
    soon(lambda: worker.waiting == 0)
    asked.clear()
    world.sink.go_away()
    store(worker, 2)
    soon(lambda: asked)
    assert asked[0] == 1


def test_a_call_without_an_end_is_an_outage(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until then the sink is only behind."""
    worker = world.worker()
    world.sink.open.clear()
    store(worker, 1)
    assert report(worker).state is SinkState.BEHIND
    monkeypatch.setattr(delivery_record, "LONGEST_CALL_S", 0.01)
    assert report(worker).state is SinkState.DOWN


def test_a_refusing_sink_tells_what_it_lost(world: World) -> None:
    """Rounds that were set aside count as dropped, and the state lasts for some minutes."""
    worker = world.worker()
    world.sink.problem = lambda numbers: errors.StoreError("bad label") if 1 in numbers else None
    store(worker, 1)
    soon(lambda: worker.dropped)
    store(worker, 2)
    found = report(worker)
    assert (found.state, found.error, found.polls) == (SinkState.REFUSING, "bad label", 1)
    assert found.dropped == {"refused": 1}


def test_samples_that_a_sink_leaves_out_make_it_refusing(world: World) -> None:
    """The sink named the series; the reason is shown."""
    worker = world.worker()
    worker._meters[0]._made.left_out.add(3, "out of order: up{}")
    found = report(worker)
    assert (found.state, found.left_out, found.left_out_reason) == (
        SinkState.REFUSING, 3, "out of order: up{}",
    )  # fmt: skip
