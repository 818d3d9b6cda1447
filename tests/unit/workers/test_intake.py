"""How many bad looks in a row are a stall, and what is done about it."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from poller.workers.guard import consumer_watchdog
from poller.workers.guard.consumer_watchdog import Cure, Diagnosis, Fault, Intake

HUB, INTAKE = Fault.HUB, Fault.INTAKE


def cures(faults: list[Fault | None]) -> list[Cure | None]:
    diagnosis = Diagnosis()
    return [diagnosis.after(fault) for fault in faults]


@pytest.mark.parametrize("fault", [HUB, INTAKE])
def test_a_single_good_look_clears_all_bad_ones(fault: Fault) -> None:
    """A stall is a stall only when nothing at all goes on."""
    almost: list[Fault | None] = [*[fault] * (consumer_watchdog.LOOKS - 1), None]
    assert set(cures(almost * 3)) == {None}


def test_a_consumer_that_takes_nothing_is_started_again_and_then_given_up() -> None:
    """Only if the new start changes nothing."""
    done = cures([INTAKE] * (2 * consumer_watchdog.LOOKS))
    assert [cure for cure in done if cure] == [Cure.RESTART, Cure.END]
    assert done.index(Cure.RESTART) == consumer_watchdog.LOOKS - 1


def test_a_later_stall_gets_its_own_new_start() -> None:
    """It was well in between."""
    done = cures([*[INTAKE] * consumer_watchdog.LOOKS, None, *[INTAKE] * consumer_watchdog.LOOKS])
    assert [cure for cure in done if cure] == [Cure.RESTART, Cure.RESTART]


def test_a_loop_that_does_not_answer_cannot_be_told_to_start_again() -> None:
    """So the process ends."""
    assert [cure for cure in cures([HUB] * consumer_watchdog.LOOKS) if cure] == [Cure.END]


class Hub:
    """Celery's loop as seen from outside: it calls what it is given, but for the first few calls, which get lost."""

    def __init__(self, loses: int) -> None:
        self._loses = loses

    def call_soon(self, call: Callable[..., None], *args: object) -> None:
        self._loses -= 1
        if self._loses < 0:
            call(*args)


@pytest.mark.parametrize(("loses", "told"), [(1, []), (1_000_000, [(HUB, Cure.END)])])
def test_a_question_that_got_lost_is_asked_again(
    monkeypatch: pytest.MonkeyPatch, loses: int, told: list[tuple[Fault, Cure]]
) -> None:
    """A broken connection makes the loop drop what was to be called; a loop that is stuck never answers."""
    monkeypatch.setattr(consumer_watchdog, "LOOK_S", 0.0)
    consumer = SimpleNamespace(hub=Hub(loses), pool=SimpleNamespace(num_processes=1))
    looks, heard, over = itertools.count(), list[tuple[Fault, Cure]](), threading.Event()

    def stopping() -> bool:
        if heard or next(looks) > 4 * consumer_watchdog.LOOKS:
            over.set()
        return over.is_set()

    Intake(consumer, lambda: 0, lambda *what: heard.append(what), lambda: None).start(stopping)
    assert over.wait(10)
    assert heard == told


def test_both_ways_are_over_within_half_a_minute() -> None:
    """What the operator is promised, with the time a worker takes to leave."""
    assert 2 * consumer_watchdog.LOOKS * consumer_watchdog.LOOK_S + 4 <= 30
