"""How old the data of targets are: the age of the last good poll in intervals of the target.

A failing target is counted like any other. A dark site must not look punctual because its targets
have left the queue.
"""

from __future__ import annotations

import enum
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

#: The upper edges of the bands, in intervals. The last band has the rest.
EDGES = (0.5, 1.0, 1.5, 3.0)
#: From this band on data are old: a poll is missing.
OLD_BAND = EDGES.index(1.5) + 1


class Excuse(enum.StrEnum):
    """Why data are old. `LATE` is none: the platform is behind, or stands still."""

    FAILING = "failing"
    PAUSED = "paused"  # the breaker was opened by hand
    HELD = "held"  # the site is dark
    LATE = "late"


@dataclass(frozen=True, slots=True)
class PollAges:
    """Numbers of targets by the age of their last good poll. `never` had no good poll yet."""

    bands: Sequence[int] = (0,) * (len(EDGES) + 1)
    never: int = 0
    # The old ones by what explains them:
    failing: int = 0
    paused: int = 0
    held: int = 0
    late: int = 0

    @property
    def looked_at(self) -> int:
        return sum(self.bands) + self.never

    @property
    def old(self) -> int:
        """The targets whose last good poll is older than one and a half of their intervals."""
        return sum(self.bands[OLD_BAND:])


def band(age_ms: int, interval_ms: int) -> int:
    """Return the band of an age. An age before the poll, by clocks that differ, is no age."""
    return bisect_left(EDGES, age_ms / interval_ms) if interval_ms > 0 else 0


def total(parts: Iterable[PollAges]) -> PollAges:
    """Return the sums of parts of a fleet."""
    every = list(parts)
    columns = zip(*(each.bands for each in every), strict=True)
    bands = [sum(column) for column in columns] or PollAges().bands
    return PollAges(
        bands=tuple(bands),
        never=sum(each.never for each in every),
        failing=sum(each.failing for each in every),
        paused=sum(each.paused for each in every),
        held=sum(each.held for each in every),
        late=sum(each.late for each in every),
    )
