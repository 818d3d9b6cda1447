"""A waiting batch lends its capacity, and never more is lent than the pool has spare threads."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

from kombu.common import QoS

from poller.workers.batch.capacity_lending import CapacityLending


class Hub:
    """A hub that runs its callbacks when `places` is read."""

    def __init__(self) -> None:
        self.ready: list[Callable[[], None]] = []

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.ready.append(callback)

    def run_callbacks(self) -> None:
        for callback in reversed(self.ready):  # the real one keeps no order
            callback()
        self.ready.clear()


def consumer(places: int, spare: int) -> Any:
    channel: dict[str, int] = {}
    qos = QoS(channel.update, places)
    return SimpleNamespace(qos=qos, channel=channel, pool=SimpleNamespace(spare=spare), hub=Hub())


def places(at: Any) -> int:
    at.hub.run_callbacks()
    return int(at.qos.value)


def test_a_waiting_batch_raises_the_prefetch_count() -> None:
    """The count returns to its first value when the batch ends."""
    lending, at = CapacityLending(), consumer(4, spare=10)
    lending.attach(at)
    with lending.lend():
        assert places(at) == 5
        assert at.channel == {"prefetch_count": 5}
    assert places(at) == 4
    assert at.channel == {"prefetch_count": 4}


def test_a_job_lends_its_place_whatever_batches_lend() -> None:
    """The pool has threads for jobs beside the spare ones, and a new consumer knows of them."""
    lending, at, after = CapacityLending(), consumer(4, spare=1), consumer(4, spare=1)
    lending.attach(at)
    with lending.lend(), lending.lend_place(), lending.lend_place():
        assert places(at) == 7
        assert lending.lent == 1, "the heartbeat counts batches"
        lending.detach()
        lending.attach(after)
        assert places(after) == 7
    assert places(after) == 4


def test_the_prefetch_count_changes_on_celerys_hub_only() -> None:
    """Celery changes the count there too, without a lock."""
    lending, at = CapacityLending(), consumer(4, spare=10)
    lending.attach(at)
    with lending.lend():
        assert at.qos.value == 4
        assert places(at) == 5
    assert at.qos.value == 5


def test_capacity_lent_and_returned_between_two_hub_passes_changes_nothing() -> None:
    """The hub may run the callbacks in any order, and Celery never counts below one."""
    lending, at = CapacityLending(), consumer(1, spare=10)
    lending.attach(at)
    for _ in range(3):
        with lending.lend():
            pass
        assert places(at) == 1


def test_no_more_is_lent_than_the_pool_has_spare_threads() -> None:
    """A batch beyond the limit lends nothing and returns nothing."""
    lending, at = CapacityLending(), consumer(4, spare=2)
    lending.attach(at)
    with ExitStack() as waiting:
        for _ in range(5):
            waiting.enter_context(lending.lend())
        assert places(at) == 6
    assert places(at) == 4


def test_a_new_consumer_gets_the_lent_capacity() -> None:
    """After a broker reset Celery starts with its first count, and waiting batches still lend."""
    lending, before, after = CapacityLending(), consumer(4, spare=10), consumer(4, spare=10)
    lending.attach(before)
    with lending.lend(), lending.lend():
        lending.attach(after)
        assert places(after) == 6
    assert places(after) == 4


def test_capacity_returned_while_the_broker_is_away_is_counted_once() -> None:
    """Celery makes its new count before the consumer is attached again."""
    lending, at = CapacityLending(), consumer(4, spare=10)
    lending.attach(at)
    with ExitStack() as before:
        before.enter_context(lending.lend())
        lending.detach()
        at.qos = QoS(lambda **_: None, 4)
        before.close()
        with lending.lend():
            lending.attach(at)
            assert places(at) == 5
    assert places(at) == 4


def test_without_a_consumer_or_spare_threads_nothing_is_lent() -> None:
    """A prefork child has no consumer, and some pools have no spare thread."""
    lending, at = CapacityLending(), consumer(4, spare=0)
    with lending.lend():
        lending.attach(at)
        with lending.lend():
            assert places(at) == 4
    assert places(at) == 4
