"""The cheapest requests for the numbers of a known device: row ranges to walk, OIDs to get. Pure.

One request costs as much as REQUEST_ROWS rows. So only long runs of unneeded rows are skipped, walk
responses are filled, and the remaining rows share GETs. One whole column of each table is walked,
because a new row shows there. Empty tables are probed (`change_detection`).
"""

from __future__ import annotations

import sys
from array import array
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import NamedTuple

from poller.collectors.snmp.modules.module_set import ModuleSet
from poller.collectors.snmp.read import change_detection
from poller.collectors.snmp.read.change_detection import PartRead, TableProbe

#: Measured: one exchange costs the CPU of this many walked rows, and a round trip of time.
REQUEST_ROWS = 50
#: Measured: a row requested by its OID costs this many walked rows.
GET_ROWS = 1.5
#: Responses of the longest range that one walker reads at a time.
RANGE_RESPONSES = 4

#: For each row of a part: the column of a needed row, "" for a needed scalar, None if not needed.
Columns = Sequence[str | None]


class Capacity(NamedTuple):
    """Rows that fit a walk response, and OIDs that fit a GET."""

    rows: int
    oids: int


class RowRange(NamedTuple):
    """Adjacent rows of the last full read: `rows` of them after `cursor`, within `root`."""

    #: Name of the part, for error messages.
    part: str
    root: str
    cursor: str
    rows: int
    #: The range ends its part. One more row is requested, so that a new row shows.
    ends: bool = False


class Route(NamedTuple):
    """The requests of a numbers-only read."""

    #: OIDs to get. Their rows come first in the result.
    get: tuple[str, ...]
    ranges: tuple[RowRange, ...]
    #: For each row of the result, its position in the full read; -1 for a row that was not there.
    positions: Sequence[int]
    #: Names of the parts that the GETs read from.
    get_parts: tuple[str, ...]
    #: Places where rows may appear that the ranges would not meet.
    probes: tuple[TableProbe, ...] = ()


class _Span(NamedTuple):
    """Rows `start` to `stop` of read number `read`; `ends`: the part must end there."""

    read: int
    start: int
    stop: int
    ends: bool = False

    @property
    def size(self) -> int:
        """Number of rows."""
        return self.stop - self.start

    def covers(self, read: int, at: int) -> bool:
        """Whether row `at` of read number `read` is in the span."""
        if read != self.read:
            return False
        return self.start <= at < self.stop

    def meets(self, read: int, at: int) -> bool:
        """Whether a walk of the span meets a new row before row `at`."""
        if self.covers(read, at):
            return True
        at_end = read == self.read and at == self.stop
        return at_end and self.ends


def find(
    reads: Sequence[PartRead],
    module_set: ModuleSet,
    signals: Sequence[str],
    capacity: Capacity,
    resting: Container[str] = (),
) -> Route:
    """The route to all numbers of a full read but the resting ones.

    The `signals` are its first rows.
    """
    columns = [_needed_columns(read, module_set, resting) for read in reads]
    spans = _joined(sorted(_walked_spans(columns, capacity)), capacity)

    get = dict.fromkeys(signals)
    get_parts: dict[str, None] = {}
    for read, at in _needed_rows(columns):
        if not any(span.covers(read, at) for span in spans):
            name, _ = reads[read].rows[at]
            get[name] = None
            get_parts[reads[read].part.name] = None

    ranges: list[RowRange] = []
    for span in spans:
        for piece in _pieces(span, capacity):
            ranges.append(_range(reads[piece.read], piece))

    def meets(read: int, at: int) -> bool:
        return any(span.meets(read, at) for span in spans)

    return Route(
        get=tuple(map(sys.intern, get)),
        ranges=tuple(ranges),
        positions=_positions(reads, get, spans),
        get_parts=tuple(get_parts),
        probes=change_detection.find_probes(reads, module_set, meets),
    )


def _positions(
    reads: Sequence[PartRead], get: Iterable[str], spans: Iterable[_Span]
) -> Sequence[int]:
    """Positions of the route's rows in the full read: first the GETs, then the spans."""
    starts: list[int] = []
    position: dict[str, int] = {}
    total = 0
    for read in reads:
        starts.append(total)
        for oid, _ in read.rows:
            position[oid] = total
            total += 1

    positions = array("i", (position.get(name, -1) for name in get))
    for span in spans:
        first = starts[span.read]
        positions.extend(range(first + span.start, first + span.stop))
    return positions


def count_requests(route: Route, capacity: Capacity) -> int:
    """Requests that following a route takes, without its probes."""
    count = -(-len(route.get) // capacity.oids)
    for each in route.ranges:
        count += -(-(each.rows + each.ends) // capacity.rows)
    return count


def _needed_columns(read: PartRead, module_set: ModuleSet, resting: Container[str]) -> Columns:
    """The columns of the rows whose values change; see `Columns`."""
    walked = read.part.walk
    columns: list[str | None] = []
    for oid, _ in read.rows:
        metric = None if oid in resting else module_set.number_metric(oid)
        if metric is None:
            columns.append(None)
        elif metric.indexes and walked and oid != walked:
            columns.append(metric.oid)
        else:
            columns.append("")
    return columns


def _needed_rows(columns: Sequence[Columns]) -> Iterator[tuple[int, int]]:
    """Read number and position of each needed row."""
    for read, needed in enumerate(columns):
        for at, column in enumerate(needed):
            if column is not None:
                yield read, at


def _pieces(span: _Span, capacity: Capacity) -> Iterator[_Span]:
    """Cut a long span so that walkers can share it. Every response but the last stays full."""
    size = RANGE_RESPONSES * capacity.rows
    for start in range(span.start, span.stop, size):
        stop = min(start + size, span.stop)
        ends = span.ends and stop == span.stop
        yield _Span(span.read, start, stop, ends)


def _range(read: PartRead, span: _Span) -> RowRange:
    """The request for a span: it starts after the row before its first row."""
    cursor = read.part.walk
    if span.start:
        cursor, _ = read.rows[span.start - 1]
    return RowRange(
        part=read.part.name,
        root=read.part.walk,
        cursor=cursor,
        rows=span.size,
        ends=span.ends,
    )


def _walked_spans(columns: Sequence[Columns], capacity: Capacity) -> Iterator[_Span]:
    """The spans to walk. The longest run of each table comes first: it watches for new rows."""
    runs: list[tuple[str, _Span]] = []
    for read, needed in enumerate(columns):
        runs += _runs(read, needed, capacity)

    watched: set[str] = set()
    for table, run in sorted(runs, key=_size_of, reverse=True):
        watch = table not in watched
        watched.add(table)
        best = _cheapest(run, columns[run.read], capacity, watch)
        if best.size:
            yield best


def _size_of(table_run: tuple[str, _Span]) -> int:
    _, run = table_run
    return run.size


def _cheapest(run: _Span, needed: Columns, capacity: Capacity, watch: bool) -> _Span:
    """The span of the run to walk, empty if GETs alone are cheapest and no new rows are watched."""
    choices = [_whole(run, needed)]
    choices += _full_responses(run, needed, capacity, watch)
    if watch:
        choices.append(_one_column(run, needed))
    else:
        choices.append(_Span(run.read, 0, 0))

    def cost(span: _Span) -> float:
        return _cost(span, run, needed, capacity)

    return min(choices, key=cost)


def _runs(read: int, needed: Columns, capacity: Capacity) -> Iterator[tuple[str, _Span]]:
    """Runs of needed rows of one table, with short gaps between them."""
    max_gap = REQUEST_ROWS if capacity.rows > 1 else 0
    table = ""
    start = stop = 0  # of the current run; `stop` follows its last needed row
    for at, column in enumerate(needed):
        if not column:
            continue
        row_table = column.rpartition(".")[0]
        if stop and (row_table != table or at - stop > max_gap):
            yield table, _Span(read, start, stop)
            stop = 0
        if not stop:
            start = at
        table = row_table
        stop = at + 1
    if stop:
        yield table, _Span(read, start, stop)


def _cost(span: _Span, run: _Span, needed: Columns, capacity: Capacity) -> float:
    """Cost, in walked rows, of walking the span and getting the other needed rows of the run."""
    walked = _count(needed, span.start, min(span.stop, run.stop))
    left = _count(needed, run.start, run.stop) - walked
    walk_cost = _requests(span, capacity) * REQUEST_ROWS + span.size
    get_cost = GET_ROWS + REQUEST_ROWS / capacity.oids
    return walk_cost + left * get_cost


def _requests(span: _Span, capacity: Capacity) -> int:
    """Requests that a walk of the span takes."""
    rows = span.size + span.ends
    return -(-rows // capacity.rows)


def _count(needed: Columns, start: int, stop: int) -> int:
    """Number of needed table rows between two positions."""
    columns = needed[start:stop]
    return sum(1 for column in columns if column)


def _longest_column(run: _Span, needed: Columns) -> int:
    """Rows of the longest column in the run."""
    columns = filter(None, needed[run.start : run.stop])
    lengths = Counter(columns)
    return max(lengths.values())


def _whole(run: _Span, needed: Columns) -> _Span:
    """The whole run. If it may hold a single whole column, the row after it is included."""
    if run.size >= 2 * _longest_column(run, needed):
        return run
    return _with_next_row(run, needed)


def _with_next_row(span: _Span, needed: Columns) -> _Span:
    """The row after a column shows that the column has not grown."""
    if span.stop < len(needed):
        return span._replace(stop=span.stop + 1)
    return span._replace(ends=True)


def _one_column(run: _Span, needed: Columns) -> _Span:
    """The first column of the run, and the row after it."""
    column = needed[run.start]
    last = run.start
    for at in range(run.start, run.stop):
        if needed[at] == column:
            last = at
    only = _Span(run.read, run.start, last + 1)
    return _with_next_row(only, needed)


def _full_responses(
    run: _Span, needed: Columns, capacity: Capacity, watch: bool
) -> Iterator[_Span]:
    """As many full responses as the run holds, placed where most of the rows are needed."""
    size = run.size // capacity.rows * capacity.rows
    if not 0 < size < run.size:
        return
    # Twice the longest column always holds one whole column and the row after it.
    if watch and size < 2 * _longest_column(run, needed):
        return

    def needed_rows(start: int) -> int:
        return _count(needed, start, start + size)

    best = max(range(run.start, run.stop - size + 1), key=needed_rows)
    yield _Span(run.read, best, best + size)


def _joined(spans: Iterable[_Span], capacity: Capacity) -> list[_Span]:
    """Join neighbours that need fewer requests together."""
    joined: list[_Span] = []
    for span in spans:
        if joined and joined[-1].read == span.read:
            last = joined[-1]
            both = _Span(span.read, last.start, span.stop, span.ends)
            apart = _requests(last, capacity) + _requests(span, capacity)
            saved = apart - _requests(both, capacity)
            if saved * REQUEST_ROWS > span.start - last.stop:
                joined[-1] = both
                continue
        joined.append(span)
    return joined
