"""A worker that stood still is told of: one event with the reason, which is a log line too, and a counter."""

from __future__ import annotations

from contextlib import suppress

from poller import errors, event_publisher
from poller.bootstrap import Services
from poller.domain.record.event_kinds import Event, Kind

#: Among the totals of the board: how often any worker stood still.
TOTAL = "worker_stalls"


def tell(services: Services, worker: str, why: str, then: str) -> None:
    """Never raises: a worker that is to end does so even if Redis is away."""
    message = f"{worker}: {why}; {then}"
    event_publisher.emit(
        services,
        [
            Event(
                event_publisher.now_ms(),
                Kind.WORKER_STALLED,
                message,
                data={"worker": worker, "why": why},
            )
        ],
    )
    with suppress(errors.StoreError):
        services.board.count({TOTAL: 1})
