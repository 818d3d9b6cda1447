"""How much may wait, and how short of workers are we?"""

from __future__ import annotations

import pytest

from poller.domain.record.overview import Worker
from poller.domain.scheduling import capacity


def worker(name: str, slots: int, *queues: str) -> Worker:
    return Worker(name, 0, 0, 0, 0, 0, queues=queues, slots=slots)


def test_a_queue_has_room_for_what_its_workers_take_up_soon() -> None:
    """Two batches for each that they poll at a time, and never more than the setting."""
    crowd = [worker("a", 16, "poll.snmp", "poll.x"), worker("b", 4, "poll.snmp")]
    assert capacity.batch_limits(crowd, 256) == {"poll.snmp": 40, "poll.x": 32}
    assert capacity.batch_limits(crowd, 35) == {"poll.snmp": 35, "poll.x": 32}
    assert capacity.batch_limits([], 256) == {}


def test_queues_of_jobs_are_not_for_batches() -> None:
    """A worker lists both in its heartbeat; the leader dispatches batches to those of polls."""
    serving = worker("a", 4, "poll.snmp", "job.acme")
    assert capacity.batch_limits([serving], 1000) == {"poll.snmp": 8}
    dear = Worker("a", 0, 0, 0, 0, 0, queues=("job.acme",), costs={"job.acme": 9.0})
    assert capacity.batch_sizes([dear], 64) == {}


def test_a_worker_without_slots_gets_one_batch() -> None:
    """An older version or another pool reports 0 slots."""
    assert capacity.batch_limits([worker("a", 0, "poll.snmp")], 256) == {"poll.snmp": 1}


def test_batches_of_costly_polls_are_smaller() -> None:
    """The highest cost of a worker counts, and a batch is never empty."""
    dear = Worker(
        "a",
        0,
        0,
        0,
        0,
        0,
        queues=("poll.olt", "poll.olt;site=ams", "poll.snmp"),
        costs={"olt": 8.0},
    )
    dearer = Worker("b", 0, 0, 0, 0, 0, queues=("poll.olt",), costs={"olt": 200.0, "other": 3.0})
    assert capacity.batch_sizes([dear], 64) == {"poll.olt": 8, "poll.olt;site=ams": 8}
    assert capacity.batch_sizes([dear, dearer], 64) == {"poll.olt": 1, "poll.olt;site=ams": 8}
    assert capacity.batch_sizes([], 64) == {}


@pytest.mark.parametrize(
    ("needed", "done", "overdue", "expected"),
    [
        (100.0, 100.0, 0, 0.0),
        (100.0, 43.5, 400, 0.0),  # less than five seconds of work: a hiccup
        (100.0, 43.5, 4_000, 100 / 43.5),
        (100.0, 130.0, 4_000, 0.0),  # behind, but catching up
        (100.0, 99.0, 4_000, 0.0),
        (100.0, 0.0, 4_000, None),
        (0.0, 0.0, 0, 0.0),
        (0.01, 0.0, 1, 0.0),  # one slow target, a moment late
    ],
)
def test_a_shortage_is_the_factor_by_which_workers_are_missing(
    needed: float, done: float, overdue: int, expected: float | None
) -> None:
    """There is no shortage without overdue targets."""
    assert capacity.shortage(needed, done, overdue) == expected


@pytest.mark.parametrize(
    ("per_s", "queues", "expected"),
    [
        (0, 0, 0.5),
        (0, 3, 0.5),
        (3, 1, 0.5),
        (333, 1, 0.5),
        (3_840, 1, 0.05),
        (1_000_000, 1, 0.05),
        (16_667, 16, 0.184),
    ],
)
def test_a_large_fleet_is_ticked_more_often(per_s: float, queues: int, expected: float) -> None:
    """A tick follows when each queue has three full batches, or after the longest pause."""
    wanted = capacity.targets_per_tick([1] * queues, 64)
    assert capacity.pause_s(0.5, per_s, wanted) == pytest.approx(expected, abs=0.001)


@pytest.mark.parametrize(
    ("workers", "batches"), [([1], 3), ([2], 4), ([3], 6), ([4], 4), ([8], 8), ([1, 2], 7)]
)
def test_a_tick_fills_the_batch_of_each_worker(workers: list[int], batches: int) -> None:
    """More workers need more targets in a tick: each gets three quarters of a batch, or a
    multiple.
    """
    full = 3 * 64 * workers.count(1)
    mostly_full = (batches - 3 * workers.count(1)) * 48
    assert capacity.targets_per_tick(workers, 64) == full + mostly_full
