"""How many batches may wait for one worker: what it takes in half a second, and a trial after a
stall.
"""

from __future__ import annotations

from poller.domain.scheduling.own_queue_pace import LEAST_WAITING, STALLED_S, QueuePace

SLOTS = 16


def publish(pace: QueuePace, batches: int, now_mono: float) -> None:
    for _ in range(batches):
        pace.publish(now_mono)


def test_a_worker_with_an_empty_queue_gets_a_batch_for_each_slot() -> None:
    pace = QueuePace(0, 10.0)
    assert pace.room(SLOTS, True) == SLOTS
    publish(pace, 5, 10.0)
    assert pace.room(SLOTS, True) == SLOTS - 5
    assert pace.room(4, True) == 0


def test_a_slow_worker_gets_few_batches() -> None:
    """Batches had to wait, so no more may wait than the worker takes in half a second."""
    pace = QueuePace(0, 10.0)
    publish(pace, 4, 10.0)
    pace.read(3, 10.5)
    assert pace.room(SLOTS, True) == 0
    pace.read(1, 11.0)
    assert pace.room(SLOTS, True) == LEAST_WAITING - 1


def test_a_worker_gets_a_batch_for_each_slot_while_all_are_busy() -> None:
    """Elsewhere its batches would wait, too, and cost more."""
    pace = QueuePace(0, 10.0)
    publish(pace, 4, 10.0)
    pace.read(3, 10.5)
    assert pace.room(SLOTS, False) == SLOTS - 3


def test_a_busy_worker_gets_what_it_takes_in_half_a_second() -> None:
    pace = QueuePace(0, 10.0)
    for tick in range(1, 11):
        publish(pace, 2, 10.0 + (tick - 1) / 10)
        pace.read(1, 10.0 + tick / 10)
    pace.read(1, 11.0)
    assert 15 <= pace.per_s <= 25
    assert pace.room(SLOTS, True) in range(7, 12)


def test_a_worker_that_takes_nothing_for_two_seconds_is_stalled() -> None:
    """An empty queue says nothing, however long."""
    pace = QueuePace(0, 10.0)
    assert not pace.is_stalled(99.0)
    publish(pace, 1, 99.0)
    pace.read(1, 99.5)
    assert not pace.is_stalled(99.5)
    assert pace.is_stalled(99.0 + STALLED_S)
    pace.read(0, 100.2)
    assert not pace.is_stalled(100.2)


def test_a_stalled_worker_gets_one_batch_at_a_time_until_it_takes_one() -> None:
    pace = QueuePace(0, 10.0)
    publish(pace, 3, 10.0)
    pace.hand_over()
    pace.read(0, 11.1)
    assert pace.room(SLOTS, True) == 1
    publish(pace, 1, 11.1)
    assert pace.room(SLOTS, True) == 0
    pace.read(0, 11.6)
    assert pace.room(SLOTS, True) == SLOTS
