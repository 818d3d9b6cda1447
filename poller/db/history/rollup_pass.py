"""One pass over the marked days: their roll-ups are made, some days in one transaction."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sqlalchemy.engine import Engine

from poller import errors
from poller.db.history import rollup_marks, rollups
from poller.db.history.rollup_marks import MarkedDay
from poller.db.history.rollups import Kept
from poller.domain.batched import batched
from poller.domain.rollups.touched_days import DAY_MS

#: A day is rolled up this long after its end: by then the polls after midnight are in a block.
SETTLES_MS = 7_200_000
#: Marked days that one look finds, and those that one transaction stores.
LOOK = 400
CHUNK = 8


@dataclass(slots=True)
class RolledUp:
    """The numbers of a pass, and the targets whose polls could not be read."""

    days: int = 0
    rows: int = 0
    is_complete: bool = False
    damaged: set[int] = field(default_factory=set)
    fault: str = ""


def roll_up(
    engine: Engine, now_ms: int, kept: Kept, rest: Callable[[float], None], until_mono: float
) -> RolledUp:
    """Make the roll-ups of all marked days that are over, or as many as the time allows.

    Idempotent. After each step the pass rests as long as the step took, so that polls get the
    processor. A damaged day stays marked. Raises StoreError.
    """
    done = RolledUp()
    ended_ms = now_ms - SETTLES_MS - DAY_MS
    after = (0, 0)
    while marked := rollup_marks.due(engine, ended_ms, after, LOOK):
        for some in batched(marked, CHUNK):
            if time.monotonic() >= until_mono:
                return done
            started_mono = time.monotonic()
            _make_or_parts(engine, some, kept, done)
            rest(time.monotonic() - started_mono)
        after = (marked[-1].day_ms, marked[-1].target_id)
    done.is_complete = True
    return done


def _make_or_parts(engine: Engine, days: Sequence[MarkedDay], kept: Kept, done: RolledUp) -> None:
    """Make the roll-ups of these days; one by one if something about one of them is damaged."""
    try:
        rows = rollups.make(engine, days, kept)
    except (errors.StoreUnavailable, errors.StoreConflict):
        raise
    except errors.StoreError as error:
        if len(days) == 1:
            done.damaged.add(days[0].target_id)
            done.fault = str(error)
            return
        for day in days:
            _make_or_parts(engine, [day], kept, done)
    else:
        done.rows += rows
        done.days += len(days)
