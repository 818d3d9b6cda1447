"""The parts of a run's time, and the slowest of them."""

from __future__ import annotations

from typing import NamedTuple

from poller.domain.record.run import Run


class Part(NamedTuple):
    """One part of the time from the slot of a run to its stored readings."""

    name: str
    ms: int


def parts(run: Run) -> list[Part]:
    """The parts in the order of time. A run that never started has none."""
    if not run.started_ms:
        return []
    queue_ms = max(0, run.queue_ms)
    claim_ms = max(0, run.started_ms - run.plan_ms - queue_ms)
    attempts_ms = max(0, run.duration_ms - run.collect_ms)
    return [
        Part("wait for the claim", claim_ms),
        Part("wait in the queue", queue_ms),
        Part("earlier attempts", attempts_ms),
        Part("collect", run.collect_ms),
        Part("write", run.write_ms),
    ]


def slowest(run: Run) -> Part | None:
    """The part that took longest; None for a run that never started."""
    return max(parts(run), key=lambda part: part.ms, default=None)
