"""How many bad checks in a row are a stall, and which cure follows."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from poller.workers.guard import consumer_watchdog
from poller.workers.guard.consumer_watchdog import (
    BAD_CHECKS,
    CHECK_S,
    ConsumerWatchdog,
    Cure,
    Diagnosis,
    Fault,
)

HUB = Fault.HUB
INTAKE = Fault.INTAKE


def cures(faults: list[Fault | None]) -> list[Cure | None]:
    diagnosis = Diagnosis()
    return [diagnosis.after(fault) for fault in faults]


@pytest.mark.parametrize("fault", [HUB, INTAKE])
def test_a_single_good_check_clears_all_bad_ones(fault: Fault) -> None:
    """Only an unbroken row of bad checks is a stall."""
    almost: list[Fault | None] = [*[fault] * (BAD_CHECKS - 1), None]
    assert set(cures(almost * 3)) == {None}


def test_a_consumer_that_takes_nothing_is_restarted_before_the_process_ends() -> None:
    """The process ends only if the restart changes nothing."""
    chosen = cures([INTAKE] * (2 * BAD_CHECKS))
    assert [cure for cure in chosen if cure] == [Cure.RESTART, Cure.END]
    assert chosen.index(Cure.RESTART) == BAD_CHECKS - 1


def test_a_later_stall_gets_a_restart_of_its_own() -> None:
    """The consumer worked between the two stalls."""
    chosen = cures([*[INTAKE] * BAD_CHECKS, None, *[INTAKE] * BAD_CHECKS])
    assert [cure for cure in chosen if cure] == [Cure.RESTART, Cure.RESTART]


def test_a_hub_that_does_not_answer_ends_the_process() -> None:
    """It could not execute a restart."""
    assert [cure for cure in cures([HUB] * BAD_CHECKS) if cure] == [Cure.END]


class Hub:
    """Celery's hub as seen from outside.

    It loses the first calls, and stops the test after enough of them.
    """

    def __init__(self, lost_calls: int, stopping: threading.Event) -> None:
        self._lost_calls = lost_calls
        self._stopping = stopping
        self._calls = 0

    def call_soon(self, call: Callable[..., None], *args: object) -> None:
        self._calls += 1
        if self._calls > 4 * BAD_CHECKS:
            self._stopping.set()
        if self._calls > self._lost_calls:
            call(*args)


class Events:
    def __init__(self) -> None:
        self.emitted: list[tuple[str, str]] = []

    def emit(self, reason: str, consequence: str) -> None:
        self.emitted.append((reason, consequence))


@pytest.mark.parametrize(
    ("lost_calls", "expected"), [(1, []), (1_000_000, [(HUB.value, Cure.END.value)])]
)
def test_a_lost_ping_is_repeated(
    monkeypatch: pytest.MonkeyPatch, lost_calls: int, expected: list[tuple[str, str]]
) -> None:
    """A broken connection makes the hub drop its calls; a hub that is stuck never answers."""
    monkeypatch.setattr(consumer_watchdog, "CHECK_S", 0.0)
    stopping = threading.Event()
    hub = Hub(lost_calls, stopping)
    consumer = SimpleNamespace(hub=hub, pool=SimpleNamespace(num_processes=1))
    events = Events()
    watchdog = ConsumerWatchdog(consumer, lambda: 0, events)  # type: ignore[arg-type]
    has_to_end = watchdog.watch(stopping)
    assert events.emitted == expected
    assert has_to_end == bool(expected)


def test_a_stall_is_over_within_half_a_minute() -> None:
    """The documentation promises this time, including the shutdown of the worker."""
    assert 2 * BAD_CHECKS * CHECK_S + 4 <= 30
