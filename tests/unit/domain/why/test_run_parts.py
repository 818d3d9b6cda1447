"""The parts of a run's time."""

from __future__ import annotations

from poller.domain.failures.outcome import Result
from poller.domain.record.run import Run
from poller.domain.why import run_parts


def test_the_slowest_part_is_named() -> None:
    """A run that waited in the queue for most of its time says so."""
    run = Run(
        1, 1_000, Result.OK, started_ms=9_000, finished_ms=10_000, queue_ms=7_000, collect_ms=900
    )
    assert run_parts.slowest(run) == ("wait in the queue", 7_000)
    names = {part.name: part.ms for part in run_parts.parts(run)}
    assert names["wait for the claim"] == 1_000
    assert names["earlier attempts"] == 100


def test_a_run_that_never_started_has_no_parts() -> None:
    """A lost lease took no time of a worker that is known."""
    run = Run(1, 1_000, Result.FAILED, error_code="lease_lost")
    assert run_parts.slowest(run) is None
