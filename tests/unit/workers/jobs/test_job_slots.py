"""Job slots: runs wait in order, and the queues of jobs are left only when they wait for long."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from poller.workers.batch.capacity_lending import CapacityLending
from poller.workers.jobs import job_slots
from poller.workers.jobs.job_slots import JobSlots, Slot
from tests.conftest import wait_until


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    monkeypatch.setattr(job_slots, "PATIENCE_S", 0.1)
    return []


def slots(count: int, pauses: list[bool]) -> JobSlots:
    made = JobSlots(count, CapacityLending())
    made.attach(pauses.append)
    return made


class Waiting(threading.Thread):
    """A thread that waits for a slot."""

    def __init__(self, slots: JobSlots, order: list[Any] | None = None) -> None:
        super().__init__(daemon=True)
        self._slots = slots
        self._order = order if order is not None else []
        self.slot: Slot | None = None
        self.start()

    def run(self) -> None:
        self.slot = self._slots.take()
        self._order.append(self)


def taken(slots: JobSlots) -> Slot:
    slot = slots.take()
    assert slot is not None
    return slot


def test_short_runs_leave_the_queues_alone(pauses: list[bool]) -> None:
    """A burst of a thousand short runs is no reason to pause."""
    room = slots(4, pauses)

    def run() -> None:
        for _ in range(50):
            taken(room).release()

    threads = [threading.Thread(target=run) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert pauses == []


def test_a_long_wait_leaves_the_queues_until_nothing_waits(pauses: list[bool]) -> None:
    """One pause and one return, whatever the number of runs that wait."""
    room = slots(1, pauses)
    held = taken(room)
    waiting = [Waiting(room) for _ in range(5)]
    wait_until(lambda: pauses == [True], "the pause")
    held.release()
    for _ in range(5):
        wait_until(lambda: any(each.slot for each in waiting), "the next turn")
        next_one = next(each for each in waiting if each.slot)
        waiting.remove(next_one)
        if waiting:
            assert pauses == [True]
        assert next_one.slot
        next_one.slot.release()
    wait_until(lambda: pauses == [True, False], "the return")


def test_the_queues_stay_left_while_all_slots_are_taken(pauses: list[bool]) -> None:
    """The last waiting run has its slot: a further message would wait again."""
    room = slots(1, pauses)
    held = taken(room)
    waiting = Waiting(room)
    wait_until(lambda: pauses == [True], "the pause")
    held.release()
    waiting.join(10)
    assert waiting.slot
    assert pauses == [True]
    waiting.slot.release()
    assert pauses == [True, False]


def test_a_waiting_run_lends_its_place(pauses: list[bool]) -> None:
    """Polls go on while jobs wait."""
    lending = CapacityLending()
    room = JobSlots(1, lending)
    room.attach(pauses.append)
    held = taken(room)
    waiting = Waiting(room)
    wait_until(lambda: lending._jobs == 1, "the place is lent")
    held.release()
    waiting.join(10)
    assert lending._jobs == 0


def test_slots_are_taken_in_order(pauses: list[bool]) -> None:
    """No run overtakes another."""
    room = slots(1, pauses)
    held = taken(room)
    order: list[Any] = []
    waiting = []
    for number in range(5):
        waiting.append(Waiting(room, order))
        wait_until(lambda number=number: len(room._waiting) == number + 1, "it waits")
    held.release()
    for each in waiting:
        each.join(10)
        assert each.slot
        each.slot.release()
    assert order == waiting


def test_a_slot_is_released_once(pauses: list[bool]) -> None:
    """By the end of the handler or of its watch, whichever is later."""
    room = slots(1, pauses)
    held = taken(room)
    held.release()
    held.release()
    taken(room)
    assert room._free == 0


def test_a_stopping_worker_lets_waiting_runs_go(pauses: list[bool]) -> None:
    """Before and after the pause."""
    room = slots(1, pauses)
    taken(room)
    waiting = Waiting(room)
    wait_until(lambda: pauses == [True], "the pause")
    room.stop()
    waiting.join(10)
    assert waiting.slot is None
    assert room.take() is None


def test_without_a_consumer_a_run_does_not_wait_for_ever(pauses: list[bool]) -> None:
    """A prefork child whose slots are held by handlers that hang takes the next poll."""
    room = JobSlots(1, CapacityLending())
    taken(room)
    assert room.take() is None
    assert not room.is_paused
