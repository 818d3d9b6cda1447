"""The real polls, judged from outside: the recorder's lines against the ledger's rows."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller.db.tables import runs

#: The ledger has the server's clock in whole milliseconds; the recorder reads the same clock.
BLUR_S = 0.01
_start = attrgetter("start")


@dataclass(slots=True)
class Poll:
    """One call of the collector; instants are Unix seconds, `end` is None while it runs."""

    target: int
    pid: int
    start: float
    word: str
    end: float | None = None


class Record:
    """The recorder's file, read from the last position on."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._polls: list[Poll] = []
        self._running: dict[tuple[int, int], list[Poll]] = defaultdict(list)

    def polls(self, since: float = 0.0) -> list[Poll]:
        """Return every poll that started at or after an instant, by start."""
        for line in self._new_lines():
            self._take(*line.split(" "))
        return self._polls[bisect_right(self._polls, since, key=_start) :]

    def _new_lines(self) -> list[str]:
        if not self._path.exists():
            return []
        with self._path.open("rb") as file:
            file.seek(self._offset)
            whole = file.read().rpartition(b"\n")[0]
        self._offset += len(whole) + 1 if whole else 0
        return whole.decode().splitlines()

    def _take(self, sign: str, target: str, pid: str, micros: str, word: str) -> None:
        key, at = (int(target), int(pid)), int(micros) / 1e6
        if sign == "+":
            poll = Poll(*key, at, word)
            # At the end, or nearly: the lines of two workers may cross.
            insort(self._polls, poll, key=_start)
            self._running[key].append(poll)
        else:
            self._running[key].pop(0).end = at


def overlapping(polls: Iterable[Poll]) -> list[tuple[Poll, Poll]]:
    """Return pairs of polls of one target of which the later started before the earlier ended."""
    pairs = []
    for own in by_target(polls).values():
        pairs += [(a, b) for a, b in pairwise(own) if a.end is None or b.start < a.end]
    return pairs


def unaccounted(polls: Sequence[Poll], engine: Engine) -> list[Poll]:
    """Return finished polls without their own row in the ledger.

    The ledger has one row per target and plan, so a target that was polled twice for one plan has
    one row too few.
    """
    rows = _started(engine, min((poll.start for poll in polls), default=0.0))
    return [
        poll for target, own in by_target(polls).items() for poll in _without_row(own, rows[target])
    ]


def _started(engine: Engine, since: float) -> dict[int, list[float]]:
    """Return the start of each target's runs by the ledger; a batch may wait for SQL between its
    start and its polls.
    """
    found: dict[int, list[float]] = defaultdict(list)
    long_before_ms = (since - 60) * 1000
    query = sa.select(runs.c.target_id, runs.c.started_ms).where(runs.c.started_ms > long_before_ms)
    with engine.connect() as conn:
        for target, started_ms in conn.execute(query.order_by(runs.c.started_ms)):
            found[target].append(started_ms / 1000)
    return found


def _without_row(polls: list[Poll], rows: list[float]) -> Iterator[Poll]:
    """Give the polls without a row.

    The row of a poll is the last one that started before it, and belongs to no other poll.
    """
    taken = -1
    for poll in polls:
        row = bisect_right(rows, poll.start + BLUR_S) - 1
        if row == taken and poll.end is not None:
            yield poll
        taken = row


def by_target(polls: Iterable[Poll]) -> dict[int, list[Poll]]:
    found: dict[int, list[Poll]] = defaultdict(list)
    for poll in polls:
        found[poll.target].append(poll)
    return found
