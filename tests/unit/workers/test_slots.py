"""Places for batches are lent while a batch waits, and never more than there are threads for."""

from __future__ import annotations

from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

from kombu.common import QoS

from poller.workers.slots import Slots


def consumer(places: int, spare: int) -> Any:
    woken: list[Any] = []
    return SimpleNamespace(
        qos=QoS(lambda **_: None, places),
        pool=SimpleNamespace(spare=spare),
        hub=SimpleNamespace(call_soon=woken.append),
        woken=woken,
    )


def test_a_batch_that_waits_makes_room_for_another() -> None:
    """Celery is told, and its loop is woken; afterwards all is as before."""
    slots, at = Slots(), consumer(4, spare=10)
    slots.attach(at)
    with slots.lent():
        assert (at.qos.value, len(at.woken)) == (5, 1)
    assert at.qos.value == 4


def test_no_more_are_lent_than_there_are_threads_for() -> None:
    """Those that come too late keep their places, and give none back."""
    slots, at = Slots(), consumer(4, spare=2)
    slots.attach(at)
    with ExitStack() as waiting:
        for _ in range(5):
            waiting.enter_context(slots.lent())
        assert at.qos.value == 6
    assert at.qos.value == 4


def test_a_new_consumer_learns_what_is_lent() -> None:
    """After a broker reset Celery starts to count anew; batches that wait still have threads of their own."""
    slots, before, after = Slots(), consumer(4, spare=10), consumer(4, spare=10)
    slots.attach(before)
    with slots.lent(), slots.lent():
        slots.attach(after)
        assert after.qos.value == 6
    assert after.qos.value == 4


def test_places_lent_and_given_back_while_the_broker_is_away_are_counted_once() -> None:
    """Celery makes its new count some time before the consumer is attached again: who ends in between is not in it."""
    slots, at = Slots(), consumer(4, spare=10)
    slots.attach(at)
    with ExitStack() as before:
        before.enter_context(slots.lent())
        slots.detach()
        at.qos = QoS(lambda **_: None, 4)
        before.close()
        with slots.lent():
            slots.attach(at)
            assert at.qos.value == 5
    assert at.qos.value == 4


def test_without_a_consumer_nothing_is_lent() -> None:
    """In a prefork child, and with pools that have no threads to spare."""
    slots, at = Slots(), consumer(4, spare=0)
    with slots.lent():
        slots.attach(at)
        with slots.lent():
            assert at.qos.value == 4
    assert at.qos.value == 4
