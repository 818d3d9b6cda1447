"""Events of workers that joined, left or were lost."""

from __future__ import annotations

from poller.beat import worker_watch
from poller.domain.record.event_kinds import Kind
from poller.domain.record.overview import Worker
from poller.state.cluster.worker_registry import DEAD_AFTER_MS

NOW = 1_800_000_000_000


def worker(name: str, started_ms: int = 1, silent_ms: int = 0, instance: str = "") -> Worker:
    return Worker(name, NOW - silent_ms, started_ms, 0, 0, 0, instance=instance)


def changes(before: dict[str, int], workers: list[Worker]) -> list[tuple[Kind, str]]:
    events = worker_watch.changes(before, workers, NOW)
    return [(event.kind, event.data["worker"]) for event in events]


def test_the_same_workers_make_no_event() -> None:
    """Neither do workers with the same start, nor a dead one that was lost before."""
    dead = worker("gone", silent_ms=DEAD_AFTER_MS)
    assert changes({"a": 1}, [worker("a"), dead]) == []


def test_a_new_worker_joined() -> None:
    """A worker that started again under its old name joined too."""
    assert changes({}, [worker("a")]) == [(Kind.WORKER_JOINED, "a")]
    assert changes({"a": 1}, [worker("a", started_ms=2)]) == [(Kind.WORKER_JOINED, "a")]


def test_a_silent_worker_was_lost_and_an_unregistered_one_left() -> None:
    """A lost worker is still registered; a worker that stopped removed its entry."""
    lost = worker("a", silent_ms=DEAD_AFTER_MS + 1_000)
    assert changes({"a": 1, "b": 1}, [lost]) == [(Kind.WORKER_LOST, "a"), (Kind.WORKER_LEFT, "b")]
    [event, _] = worker_watch.changes({"a": 1, "b": 1}, [lost], NOW)
    assert event.message == "a sent no heartbeat for 11 s"


def test_a_killed_and_restarted_worker_joined_once() -> None:
    """The new process has the same name and another key; no event says that the old one left."""
    again = worker("a", started_ms=9, instance="new")
    [event] = worker_watch.changes({"a#old": 1}, [again], NOW)
    assert (event.kind, event.message) == (Kind.WORKER_JOINED, "a restarted")


def test_a_second_worker_of_the_same_name_is_reported() -> None:
    """Both are counted, and the event of the second says how to give it another name."""
    both = [worker("a", instance="x"), worker("a", started_ms=2, instance="y")]
    [event] = worker_watch.changes({"a#x": 1}, both, NOW)
    assert event.message == "a joined; 2 workers have this name, give each its own with -n"
    assert changes({"a#x": 1, "a#y": 2}, both[:1]) == [(Kind.WORKER_LEFT, "a")]
