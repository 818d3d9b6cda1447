"""Whether polling has stopped: no poll finished for longer than the plan of the fleet allows.

Lateness cannot show this: it is measured when a poll starts.
"""

from __future__ import annotations

from collections.abc import Sequence

from poller.domain.record.overview import Overview, Point, State

#: A shorter pause between two polls proves nothing: statistics have slices of ten seconds, and a
#: poll takes its time.
SHORTEST_MS = 20_000
#: A pause in which this many polls should have finished is no accident.
POLLS_EXPECTED = 30
#: The slices before the pause that the usual rate of polls is taken from.
USUAL_SLICES = 30
#: A calm adaptive fleet polls this many times less than its plan.
CALM = 10
#: A fleet that was never polled has its first polls within one interval and this time.
FIRST_POLL_MS = 30_000


def silent_ms(overview: Overview, began_ms: int) -> int:
    """Return how long no poll has finished though many were due; 0 while polling goes on.

    `began_ms` is the instant since which there have been a leader and a worker.
    """
    polled = _until_last_poll(overview.recent)
    quiet_ms = overview.as_of_ms - max(began_ms, _end_ms(polled))
    if quiet_ms < SHORTEST_MS:
        return 0

    planned_per_s = _planned_per_s(overview)
    if not planned_per_s:
        return 0
    if polled:
        expected_per_s = min(planned_per_s, _rate_per_s(polled[-USUAL_SLICES:]))
        return quiet_ms if expected_per_s * quiet_ms / 1000 >= POLLS_EXPECTED else 0

    never_polled = overview.states.get(State.UNKNOWN, 0) >= overview.targets
    if not never_polled:
        return _long_silent_ms(overview, began_ms, planned_per_s)
    interval_ms = overview.targets / planned_per_s * 1000
    return quiet_ms if quiet_ms > interval_ms + FIRST_POLL_MS else 0


def _long_silent_ms(overview: Overview, began_ms: int, planned_per_s: float) -> int:
    """Return how long a fleet has been silent whose last poll is older than the statistics.

    A fleet of long intervals has pauses as well, but no target of it waits meanwhile.
    """
    if not (overview.in_flight or overview.overdue):
        return 0
    polled_ms = max((worker.polled_ms for worker in overview.workers), default=0)
    quiet_ms = overview.as_of_ms - max(began_ms, polled_ms)
    expected = planned_per_s / CALM * quiet_ms / 1000
    return quiet_ms if expected >= POLLS_EXPECTED else 0


def _until_last_poll(points: Sequence[Point]) -> Sequence[Point]:
    for number in range(len(points), 0, -1):
        if points[number - 1].polls:
            return points[:number]
    return ()


def _end_ms(points: Sequence[Point]) -> int:
    if not points:
        return 0
    return points[-1].at_ms + round(points[-1].seconds * 1000)


def _rate_per_s(points: Sequence[Point]) -> float:
    seconds = sum(point.seconds for point in points)
    return sum(point.polls for point in points) / seconds if seconds else 0.0


def _planned_per_s(overview: Overview) -> float:
    """Polls per second that the plan asks of the running workers; targets on hold are left out."""
    on_hold = overview.parked + overview.held + overview.breakers_open + overview.opened_by_hand
    active = max(0, overview.targets - on_hold)
    served = sum(load.needed_per_s for load in overview.loads if load.workers)
    return served * active / overview.targets if overview.targets else 0.0
