"""Who came, who went, who was lost: said once, in words."""

from __future__ import annotations

from poller.beat import worker_watch
from poller.domain.record.event_kinds import Kind
from poller.domain.record.overview import Worker
from poller.state.cluster.worker_registry import DEAD_AFTER_MS

NOW = 1_800_000_000_000


def worker(name: str, started_ms: int = 1, silent_ms: int = 0, instance: str = "") -> Worker:
    return Worker(name, NOW - silent_ms, started_ms, 0, 0, 0, instance=instance)


def said(before: dict[str, int], everybody: list[Worker]) -> list[tuple[Kind, str]]:
    return [
        (event.kind, event.data["worker"]) for event in worker_watch.changes(before, everybody, NOW)
    ]


def test_nothing_new_is_no_news() -> None:
    """The same workers with the same starts; one that is dead already and was said to be."""
    dead = worker("gone", silent_ms=DEAD_AFTER_MS)
    assert said({"a": 1}, [worker("a"), dead]) == []


def test_one_that_is_new_joined() -> None:
    """And so did one that started again under its old name."""
    assert said({}, [worker("a")]) == [(Kind.WORKER_JOINED, "a")]
    assert said({"a": 1}, [worker("a", started_ms=2)]) == [(Kind.WORKER_JOINED, "a")]


def test_one_that_says_nothing_was_lost_and_one_that_said_good_bye_left() -> None:
    """The difference is whether its entry is still there."""
    lost = worker("a", silent_ms=DEAD_AFTER_MS + 1_000)
    assert said({"a": 1, "b": 1}, [lost]) == [(Kind.WORKER_LOST, "a"), (Kind.WORKER_LEFT, "b")]
    [event, _] = worker_watch.changes({"a": 1, "b": 1}, [lost], NOW)
    assert event.message == "a has said nothing for 11 s"


def test_one_that_was_killed_and_started_again_joined_once() -> None:
    """It has the same name and another key; nobody said good-bye."""
    again = worker("a", started_ms=9, instance="new")
    [event] = worker_watch.changes({"a#old": 1}, [again], NOW)
    assert (event.kind, event.message) == (Kind.WORKER_JOINED, "a is back with a new start")


def test_a_second_worker_of_the_same_name_is_said() -> None:
    """Both live: each is counted, and the one that comes is told to take another name."""
    both = [worker("a", instance="x"), worker("a", started_ms=2, instance="y")]
    [event] = worker_watch.changes({"a#x": 1}, both, NOW)
    assert (
        event.message == "a polls from now on; 2 workers have this name, give each its own with -n"
    )
    assert said({"a#x": 1, "a#y": 2}, both[:1]) == [(Kind.WORKER_LEFT, "a")]
