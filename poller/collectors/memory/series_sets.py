"""How many series sets of a target a worker keeps between polls.

A hostile device can send other names at every poll: without a limit on the series, the sets of one
target would take hundreds of megabytes.
"""

from __future__ import annotations

from collections.abc import Sequence

from poller.domain.metrics.reading import SeriesSet

#: Series of all sets that are kept for one target, and of one poll.
MAX_SERIES = 200_000


def with_newest(
    kept: Sequence[SeriesSet], newest: SeriesSet, max_sets: int
) -> tuple[SeriesSet, ...]:
    """Return the sets to keep, the newest one last: older ones while there is room for them."""
    room = MAX_SERIES - len(newest)
    result = [newest]
    for older in reversed(kept[-max_sets + 1 :]):
        room -= len(older)
        if room < 0:
            break
        result.insert(0, older)
    return tuple(result)
