"""Request sizes, learned per device: shrink after trouble, grow back slowly. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from poller.domain import interned

#: Rows of the first walk requests, and OIDs of the first GETs: every tested agent answers these.
_FIRST_ROWS = 50
_FIRST_OIDS = 20
#: Clean polls before a size that failed is tried again; doubled after each further failure.
_CLEAN_POLLS = 100
_MAX_CLEAN_POLLS = 3200
#: A proven size is too big after this many timeouts in a row, or polls with one at the same OID.
_TIMEOUTS = 4
_NO_TIMEOUTS: Mapping[str, int] = MappingProxyType({})


@dataclass(slots=True)
class LearnedSize:
    """One learned number: the current size of a request."""

    #: The operator's maximum.
    limit: int
    #: The size to request now.
    now: int
    #: Upper bound below `limit` after a failure, until enough clean polls have passed.
    ceiling: int = 0
    #: The current poll had a failure.
    _troubled: bool = False
    #: Polls without a failure since the ceiling was lowered.
    _clean_polls: int = 0
    #: Clean polls that lift the ceiling.
    _lift_after: int = _CLEAN_POLLS
    #: Largest response received.
    _proven: int = 0
    #: Size of the last unanswered request; 0 after a response of that size.
    _unanswered: int = 0
    #: Timeouts since a response of that size.
    _timeouts: int = 0
    #: OIDs at which requests of the current poll timed out.
    _timeout_oids: tuple[str, ...] = ()
    #: Number of consecutive earlier polls with a timeout, by OID.
    _timeouts_before: Mapping[str, int] = field(default_factory=lambda: _NO_TIMEOUTS)

    def __post_init__(self) -> None:
        self.now = min(self.now, self.limit)
        self.ceiling = self.ceiling or self.limit

    def record_response(self, count: int) -> None:
        """A response of this size arrived."""
        self._proven = max(self._proven, count)
        if count >= self._unanswered:
            self._unanswered = 0
            self._timeouts = 0

    def record_timeout(self, requested: int, oid: str) -> None:
        """A request of this size at `oid` timed out, and a smaller one was answered.

        The cause is a response that is too big, or a lost packet.
        """
        self._unanswered = requested
        self._timeouts += 1
        self._timeout_oids = (*self._timeout_oids, oid)

        in_a_row = max(self._timeouts, self._timeouts_before.get(oid, 0) + 1)
        repeated = in_a_row >= _TIMEOUTS and 2 * requested > self.now
        if requested > self._proven or repeated:
            self._proven = min(self._proven, requested // 2)
            self._unanswered = 0
            self._timeouts = 0
            self.record_too_big(requested)

    def record_too_big(self, requested: int) -> None:
        """A response of this size did not arrive whole."""
        self.ceiling = max(1, min(self.ceiling, requested - 1))
        self.now = max(1, min(self.now, requested // 2))
        self._troubled = True

    def end_poll(self) -> None:
        """Grow towards the ceiling after a clean poll; lift the ceiling after enough of them."""
        if self._timeout_oids or self._timeouts_before:
            before = self._timeouts_before
            counts = {oid: before.get(oid, 0) + 1 for oid in self._timeout_oids}
            self._timeouts_before = counts or _NO_TIMEOUTS
            self._timeout_oids = ()

        if self._troubled:
            self._troubled = False
            self._clean_polls = 0
        elif self.now < self.limit:
            self._grow()

    def _grow(self) -> None:
        """Lift the ceiling after enough clean polls, and take a step towards it."""
        if self.ceiling < self.limit:
            self._clean_polls += 1
            if self._clean_polls >= self._lift_after:
                self._clean_polls = 0
                self.ceiling = self.limit
                self._lift_after = min(2 * self._lift_after, _MAX_CLEAN_POLLS)

        # Double the size while no failure is known, else approach the ceiling by quarters.
        unbounded = self.ceiling == self.limit
        step = self.now if unbounded else max(1, self.now // 4)
        self.now = min(self.ceiling, self.now + step)


@dataclass(slots=True)
class RequestSizes:
    """Sizes of the requests to one device. They last as long as the target's memory."""

    #: The operator's maximum (option max_repetitions).
    limit: int
    #: Rows per walk request.
    rows: LearnedSize = field(init=False)
    #: OIDs per GET.
    oids: LearnedSize = field(init=False)
    #: Maximum rows in a response to a request for more; 0 while every response was full.
    response_capacity: int = 0
    #: The agent answers a GETNEXT of several OIDs. A full read tries again after a failure.
    multi_get_next: bool = True
    #: Rows of each subtree in its last walk: the next walk requests that many.
    subtree_rows: Mapping[str, int] = field(default_factory=lambda: interned.numbers({}))

    def __post_init__(self) -> None:
        self.rows = LearnedSize(self.limit, _FIRST_ROWS)
        self.oids = LearnedSize(self.limit, _FIRST_OIDS)

    @property
    def rows_per_response(self) -> int:
        """Rows to expect in one response of a walk."""
        return min(self.rows.now, self.response_capacity or self.rows.now)

    @property
    def oids_per_get(self) -> int:
        """OIDs to put in one GET, so that its response fits.

        A walk response of SNMP v1 always has one row, which says nothing about a GET.
        """
        rows = self.rows_per_response
        return self.oids.ceiling if rows == 1 else min(self.oids.ceiling, rows)

    def rows_to_request(self, root: str, received: int) -> int:
        """Rows of the next walk request.

        The rows that the last walk leaves plus one, which shows the end; the maximum for a new or
        grown subtree.
        """
        missing = self.subtree_rows.get(root, -1) - received
        return min(missing + 1, self.rows.now) if missing >= 0 else self.rows.now

    def record_walk(self, root: str, rows: int) -> None:
        """Learn the size of a subtree."""
        if self.subtree_rows.get(root) != rows:
            self.subtree_rows = interned.numbers({**self.subtree_rows, root: rows})

    def end_poll(self) -> None:
        self.rows.end_poll()
        self.oids.end_poll()
