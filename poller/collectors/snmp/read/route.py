"""The shortest way to the numbers of a known shape: stretches of rows to walk, single instances to get. Pure.

A request costs about as much as PACKET_ROWS rows. So unneeded rows are skipped only where many are side by side,
answers of a walk are filled, and what is left over travels together in GETs. Of each table a whole column is always
walked: a row that has come since shows there. A table without a row is a gap, which is asked for beside.
"""

from __future__ import annotations

import sys
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from poller.collectors.snmp.engines.engine_protocol import Row
from poller.collectors.snmp.modules.module_set import ModuleSet, Part
from poller.collectors.snmp.read import empty_tables
from poller.collectors.snmp.read.empty_tables import Gap
from poller.collectors.snmp.read.walker import Leg

#: Measured: one exchange costs the CPU of so many rows of a walk; in time it costs a round trip.
PACKET_ROWS = 50
#: Measured: what a row costs that is asked for by its name.
GET_ROWS = 1.5
#: Answers of the longest stretch that one walker reads at a time.
PIECE_ANSWERS = 4

#: The column of each row of a part that is needed, None for the others. A scalar's is empty.
Columns = Sequence[str | None]


class Pace(NamedTuple):
    """What fits in one exchange."""

    rows: int  # of a walk's answer
    oids: int  # of a GET


class Read(NamedTuple):
    """One part of a poll that read everything."""

    part: Part
    rows: Sequence[Row]


class Route(NamedTuple):
    get: tuple[str, ...]
    legs: tuple[Leg, ...]
    #: Of each row that comes this way, where it was when everything was read; -1 if it was not. GETs come first.
    positions: Sequence[int]
    #: Names of the parts that GETs read of.
    got: tuple[str, ...]
    #: Where rows may come that the legs would not meet.
    gaps: tuple[Gap, ...] = ()


class _Span(NamedTuple):
    """Rows `start` to `stop` of one part, and whether that is where the part must end."""

    read: int
    start: int
    stop: int
    ends: bool = False

    @property
    def size(self) -> int:
        return self.stop - self.start

    def covers(self, read: int, at: int) -> bool:
        return read == self.read and self.start <= at < self.stop

    def meets(self, read: int, at: int) -> bool:
        """Whatever comes before the row `at`: a walk begins behind the row before its first."""
        return self.covers(read, at) or (read == self.read and self.ends and at == self.stop)


def find(
    everything: Sequence[Read], module_set: ModuleSet, signals: Sequence[str], pace: Pace
) -> Route:
    """The way to all numbers of `everything`, and to `signals` before them."""
    columns = [[_column(one, oid, module_set) for oid, _ in one.rows] for one in everything]
    spans = _joined(sorted(_watched(columns, pace)), pace)
    got = [
        (read, at)
        for read, at in _needed(columns)
        if not any(span.covers(read, at) for span in spans)
    ]
    names = dict.fromkeys((*signals, *(everything[read].rows[at][0] for read, at in got)))
    starts = _starts(everything)
    position = {
        oid: starts[read] + at
        for read, one in enumerate(everything)
        for at, (oid, _) in enumerate(one.rows)
    }
    positions = array("i", (position.get(name, -1) for name in names))
    for span in spans:
        positions.extend(range(starts[span.read] + span.start, starts[span.read] + span.stop))
    legs = tuple(
        _leg(everything[piece.read], piece) for span in spans for piece in _pieces(span, pace)
    )
    parts = dict.fromkeys(everything[read].part.name for read, _ in got)
    unmet = empty_tables.find(
        everything, module_set, lambda read, at: any(span.meets(read, at) for span in spans)
    )
    return Route(tuple(map(sys.intern, names)), legs, positions, tuple(parts), unmet)


def _column(one: Read, oid: str, module_set: ModuleSet) -> str | None:
    metric = module_set.number_metric(oid)
    if metric is None:
        return None
    return metric.oid if metric.indexes and one.part.walk and oid != one.part.walk else ""


def _needed(columns: Sequence[Columns]) -> Iterator[tuple[int, int]]:
    for read, found in enumerate(columns):
        yield from ((read, at) for at, column in enumerate(found) if column is not None)


def _starts(everything: Sequence[Read]) -> list[int]:
    starts, total = [], 0
    for one in everything:
        starts.append(total)
        total += len(one.rows)
    return starts


def _pieces(span: _Span, pace: Pace) -> Iterator[_Span]:
    """Long ones are cut, so that two walkers can share them. It costs nothing: every answer but the last is full."""
    size = PIECE_ANSWERS * pace.rows
    for start in range(span.start, span.stop, size):
        last = start + size >= span.stop
        yield _Span(span.read, start, span.stop if last else start + size, span.ends and last)


def _leg(one: Read, span: _Span) -> Leg:
    cursor = one.rows[span.start - 1][0] if span.start else one.part.walk
    return Leg(one.part.name, one.part.walk, cursor, span.size, span.ends)


def _watched(columns: Sequence[Columns], pace: Pace) -> Iterator[_Span]:
    """What to walk. The longest stretch of a table is looked at first: it is the one that watches for new rows."""
    stretches = [
        item for read, found in enumerate(columns) for item in _stretches(read, found, pace)
    ]
    seen: set[str] = set()
    for table, stretch in sorted(stretches, key=lambda item: -item[1].size):
        found = columns[stretch.read]
        choices = [_whole(stretch, found), *_filled(stretch, found, pace, watch=table not in seen)]
        choices.append(
            _one_column(stretch, found) if table not in seen else _Span(stretch.read, 0, 0)
        )
        best = min(choices, key=lambda span: _cost(span, stretch, found, pace))
        seen.add(table)
        if best.size:
            yield best


def _stretches(read: int, found: Columns, pace: Pace) -> Iterator[tuple[str, _Span]]:
    """Needed rows of one table that are side by side, or nearly so."""
    gap = PACKET_ROWS if pace.rows > 1 else 0
    begun: tuple[str, int, int] | None = (
        None  # table, first row and the row after the last needed one
    )
    for at, column in enumerate(found):
        if not column:
            continue
        table = column.rpartition(".")[0]
        if begun and (table != begun[0] or at - begun[2] > gap):
            yield begun[0], _Span(read, begun[1], begun[2])
            begun = None
        begun = (table, begun[1] if begun else at, at + 1)
    if begun:
        yield begun[0], _Span(read, begun[1], begun[2])


def _cost(span: _Span, stretch: _Span, found: Columns, pace: Pace) -> float:
    """In rows: of walking the span and getting what else the stretch needs."""
    left = _count(found, stretch.start, stretch.stop) - _count(
        found, span.start, min(span.stop, stretch.stop)
    )
    return (
        _packets(span, pace) * PACKET_ROWS + span.size + left * (GET_ROWS + PACKET_ROWS / pace.oids)
    )


def _packets(span: _Span, pace: Pace) -> int:
    return -(-(span.size + span.ends) // pace.rows)


def _count(found: Columns, start: int, stop: int) -> int:
    return sum(1 for column in found[start:stop] if column)


def _longest(found: Iterable[str | None]) -> int:
    """Rows of the longest column."""
    return max(Counter(filter(None, found)).values())


def _whole(stretch: _Span, found: Columns) -> _Span:
    twice = stretch.size >= 2 * _longest(found[stretch.start : stretch.stop])
    return stretch if twice else _with_the_next(stretch, found)


def _with_the_next(span: _Span, found: Columns) -> _Span:
    """What follows the only whole column shows that nothing was added to it."""
    if span.stop < len(found):
        return span._replace(stop=span.stop + 1)
    return span._replace(ends=True)


def _one_column(stretch: _Span, found: Columns) -> _Span:
    column = found[stretch.start]
    rows = [at for at in range(stretch.start, stretch.stop) if found[at] == column]
    return _with_the_next(_Span(stretch.read, rows[0], rows[-1] + 1), found)


def _filled(stretch: _Span, found: Columns, pace: Pace, watch: bool) -> Iterator[_Span]:
    """As many full answers as there are, from where most of the rows are needed."""
    size = stretch.size // pace.rows * pace.rows
    # Of twice the length of a column, one is complete and has something behind it.
    if (
        size
        and size < stretch.size
        and (not watch or size >= 2 * _longest(found[stretch.start : stretch.stop]))
    ):
        starts = range(stretch.start, stretch.stop - size + 1)
        best = max(starts, key=lambda start: _count(found, start, start + size))
        yield _Span(stretch.read, best, best + size)


def _joined(spans: Iterable[_Span], pace: Pace) -> list[_Span]:
    """Neighbours that need fewer requests together."""
    joined: list[_Span] = []
    for span in spans:
        if joined and joined[-1].read == span.read:
            both = _Span(span.read, joined[-1].start, span.stop, span.ends)
            apart = _packets(joined[-1], pace) + _packets(span, pace)
            if (apart - _packets(both, pace)) * PACKET_ROWS > span.start - joined[-1].stop:
                joined[-1] = both
                continue
        joined.append(span)
    return joined
