"""How much to ask for in one request? Learned per device: shrink on trouble, grow back slowly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

#: Rows that every agent we know of answers at once, and OIDs that every one takes in a GET.
_FIRST_ROWS, _FIRST_OIDS = 50, 20
#: Clean polls before a size that failed is dared again; twice as many after each time it fails again.
_FORGIVE_AFTER_POLLS, _FORGIVE_AFTER_AT_MOST = 100, 3200
#: A size that has arrived before is too much after so many silences in a row, or at one place in so many polls.
_SILENCES = 4
_NOWHERE: Mapping[str, int] = MappingProxyType({})


@dataclass(slots=True)
class Size:
    """One number that is learned: at most `limit`, below `ceiling` for a while once that was too much."""

    limit: int
    now: int
    ceiling: int = 0
    _troubled: bool = False
    _clean_polls: int = 0
    _forgive_after: int = _FORGIVE_AFTER_POLLS
    #: The most that has arrived at once. What was silent last, and how often since an answer as large.
    _proven: int = 0
    _doubted: int = 0
    _silences: int = 0
    #: Where it was silent: in this poll, and in how many polls before it.
    _places: tuple[str, ...] = ()
    _places_before: Mapping[str, int] = field(default_factory=lambda: _NOWHERE)

    def __post_init__(self) -> None:
        self.now = min(self.now, self.limit)
        self.ceiling = self.ceiling or self.limit

    def arrived(self, count: int) -> None:
        """An answer of that many came."""
        self._proven = max(self._proven, count)
        if count >= self._doubted:
            self._doubted = self._silences = 0

    def silent(self, asked: int, place: str) -> None:
        """No answer to that many at this place, but one to fewer: too many, or only a lost packet?"""
        self._doubted, self._silences = asked, self._silences + 1
        self._places = (*self._places, place)
        in_a_row = max(self._silences, self._places_before.get(place, 0) + 1)
        if asked > self._proven or (in_a_row >= _SILENCES and 2 * asked > self.now):
            self._proven, self._doubted, self._silences = min(self._proven, asked // 2), 0, 0
            self.too_many(asked)

    def too_many(self, asked: int) -> None:
        """An answer of that many did not arrive whole."""
        self.ceiling = max(1, min(self.ceiling, asked - 1))
        self.now = max(1, min(self.now, asked // 2))
        self._troubled = True

    def end_poll(self) -> None:
        """After each poll: grow towards the ceiling, and after many clean ones dare the limit again."""
        if self._places or self._places_before:
            before = self._places_before
            self._places_before = {
                place: before.get(place, 0) + 1 for place in self._places
            } or _NOWHERE
            self._places = ()
        if self._troubled:
            self._troubled, self._clean_polls = False, 0
        elif self.now < self.limit:
            self._grow()

    def _grow(self) -> None:
        if self.ceiling < self.limit:
            self._clean_polls += 1
            if self._clean_polls >= self._forgive_after:
                self._clean_polls, self.ceiling = 0, self.limit
                self._forgive_after = min(2 * self._forgive_after, _FORGIVE_AFTER_AT_MOST)
        step = (
            self.now if self.ceiling == self.limit else max(1, self.now // 4)
        )  # carefully where trouble is near
        self.now = min(self.ceiling, self.now + step)


@dataclass(slots=True)
class Tuning:
    """Of one device. `limit` is the operator's; the rest is learned and forgotten with the target's memory."""

    limit: int
    rows: Size = field(init=False)
    oids: Size = field(init=False)
    #: Most rows the agent put in an answer when it was asked for more; 0 while it never fell short.
    fits: int = 0
    #: It says what follows several OIDs at once. Where it did not, it is tried anew when everything is read.
    looks_ahead: bool = True
    #: Rows of each subtree in its last walk: the next one asks for just as many.
    sizes: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rows = Size(self.limit, _FIRST_ROWS)
        self.oids = Size(self.limit, _FIRST_OIDS)

    @property
    def per_answer(self) -> int:
        """Rows to expect in one answer of a walk."""
        return min(self.rows.now, self.fits or self.rows.now)

    @property
    def per_get(self) -> int:
        """OIDs to expect in one GET. It must fit in an answer, too; with version 1 a walk's answer has one row, which
        says nothing of that."""
        return (
            self.oids.ceiling if self.per_answer == 1 else min(self.oids.ceiling, self.per_answer)
        )

    def want(self, root: str, have: int) -> int:
        """Rows to ask for next: what last time's count leaves and one that shows the end, or all we may."""
        missing = self.sizes.get(root, 0) - have
        return (
            min(missing + 1, self.rows.now)
            if missing >= 0 and root in self.sizes
            else self.rows.now
        )

    def end_poll(self) -> None:
        self.rows.end_poll()
        self.oids.end_poll()
