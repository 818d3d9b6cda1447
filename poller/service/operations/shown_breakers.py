"""The breaker of a target with its names, for the command line, the API and the pages."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from poller.domain.failures import error_codes
from poller.presentation import formatting
from poller.state.board.breakers import BoardTarget


@dataclass(frozen=True, slots=True)
class ShownBreaker:
    """The breaker of one target, open or closed."""

    target_id: int
    device: str
    target: str
    breaker: str
    by: str  # `failures`, `hand (alice)`; empty: it is closed
    reason: str  # that the operator gave
    since: datetime | None
    for_seconds: int | None
    failures: int
    trips: int
    next_poll: datetime | None
    in_seconds: int | None
    place: str
    dead_letter: str
    error_code: str
    category: str
    message: str


def shown(seen: BoardTarget, device: str, target: str, now_ms: int) -> ShownBreaker:
    """Return the breaker of a target as people and programs see it."""
    status = seen.status
    since_ms, next_ms = seen.since_ms, seen.next_ms
    return ShownBreaker(
        target_id=seen.id,
        device=device,
        target=target,
        breaker=seen.breaker_state(now_ms).value,
        by=_opened_by(seen),
        reason=seen.opening.reason if seen.opening else "",
        since=formatting.moment(since_ms),
        for_seconds=max(0, now_ms - since_ms) // 1000 if since_ms else None,
        failures=status.failures,
        trips=status.breaker.trips,
        next_poll=formatting.moment(next_ms),
        in_seconds=max(0, next_ms - now_ms) // 1000 if next_ms else None,
        place=seen.place,
        dead_letter=status.reason.value if status.reason else "",
        error_code=status.code,
        category=error_codes.category_of(status.code),
        message=status.message,
    )


def _opened_by(seen: BoardTarget) -> str:
    if not seen.is_open:
        return ""
    return f"hand ({seen.opening.who})" if seen.opening else "failures"
