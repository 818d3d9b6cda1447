"""Places for batches are lent while a batch waits, and never more than there are threads for."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

from kombu.common import QoS

from poller.workers.batch.capacity_lending import CapacityLending


class Hub:
    """What is to be done on Celery's thread; it is done when somebody asks for the count."""

    def __init__(self) -> None:
        self.ready: list[Callable[[], None]] = []

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.ready.append(callback)

    def turn(self) -> None:
        for callback in reversed(self.ready):  # the real one keeps no order
            callback()
        self.ready.clear()


def consumer(places: int, spare: int) -> Any:
    channel: dict[str, int] = {}
    qos = QoS(channel.update, places)
    return SimpleNamespace(qos=qos, channel=channel, pool=SimpleNamespace(spare=spare), hub=Hub())


def places(at: Any) -> int:
    at.hub.turn()
    return int(at.qos.value)


def test_a_batch_that_waits_makes_room_for_another() -> None:
    """Celery's loop is woken, and takes another message in the same turn; afterwards all is as before."""
    lending, at = CapacityLending(), consumer(4, spare=10)
    lending.attach(at)
    with lending.lend():
        assert places(at) == 5
        assert at.channel == {"prefetch_count": 5}
    assert places(at) == 4
    assert at.channel == {"prefetch_count": 4}


def test_the_count_is_changed_on_celerys_own_thread_only() -> None:
    """It changes it there, too, and without a lock."""
    lending, at = CapacityLending(), consumer(4, spare=10)
    lending.attach(at)
    with lending.lend():
        assert at.qos.value == 4
        assert places(at) == 5
    assert at.qos.value == 5


def test_a_place_lent_and_given_back_within_one_turn_is_no_place_more() -> None:
    """In whatever order the hub hears of it; Celery never counts below one."""
    lending, at = CapacityLending(), consumer(1, spare=10)
    lending.attach(at)
    for _ in range(3):
        with lending.lend():
            pass
        assert places(at) == 1


def test_no_more_are_lent_than_there_are_threads_for() -> None:
    """Those that come too late keep their places, and give none back."""
    lending, at = CapacityLending(), consumer(4, spare=2)
    lending.attach(at)
    with ExitStack() as waiting:
        for _ in range(5):
            waiting.enter_context(lending.lend())
        assert places(at) == 6
    assert places(at) == 4


def test_a_new_consumer_learns_what_is_lent() -> None:
    """After a broker reset Celery starts to count anew; batches that wait still have threads of their own."""
    lending, before, after = CapacityLending(), consumer(4, spare=10), consumer(4, spare=10)
    lending.attach(before)
    with lending.lend(), lending.lend():
        lending.attach(after)
        assert places(after) == 6
    assert places(after) == 4


def test_places_lent_and_given_back_while_the_broker_is_away_are_counted_once() -> None:
    """Celery makes its new count some time before the consumer is attached again: who ends in between is not in it."""
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


def test_without_a_consumer_nothing_is_lent() -> None:
    """In a prefork child, and with pools that have no threads to spare."""
    lending, at = CapacityLending(), consumer(4, spare=0)
    with lending.lend():
        lending.attach(at)
        with lending.lend():
            assert places(at) == 4
    assert places(at) == 4
