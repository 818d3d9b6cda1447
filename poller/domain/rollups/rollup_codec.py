"""A roll-up in few bytes, and back. Bytes that are no roll-up are refused, and cost little memory.

A row has a head (the series) and a body (the numbers), each compressed. One series of many rows is
read at once, without the numbers of the others.

A peak is written as a step of a scale above the mean (and a low one below it), rounded outwards:
0.14 % apart, so that a stored peak is never below the real one.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import cramjam
import numpy as np

from poller.domain.rollups import number_matrix, rollup_head
from poller.domain.rollups.number_matrix import MatrixError, PackedMatrix
from poller.domain.rollups.rollup import Buckets, CounterTable, GaugeTable, Rollup, StateTable
from poller.domain.rollups.rollup_head import RollupHead
from poller.domain.rollups.sample_columns import Floats, Integers, SeriesRef

_VERSION = 2
_LEVEL = 3
#: The version; the sizes of head and body; the size of the compressed head.
_FRAME = struct.Struct("<BIII")
_BUCKETS = struct.Struct("<qqq")
#: Steps of the scale for each doubling, and the end of the scale: below a mean it is zero.
_STEPS = 512
_ZERO = 65_535
#: A step that rounding error made a little too long is the same step.
_ROUNDING = 1e-6
#: What a stored roll-up may claim at most.
MAXIMUM_BYTES = 256 * 1024 * 1024
MAXIMUM_BUCKETS = 10_000
MAXIMUM_NUMBERS = 2**27
#: Bytes of rows and of their numbers that are in memory at a time, about.
_AT_ONCE = 2**24
_USUAL_BUCKETS = 288
#: Matrices of a table of counters, of gauges and of states.
_OF_COUNTERS, _OF_GAUGES, _OF_STATES = 6, 5, 1

Wants = Callable[[SeriesRef], bool]


class RollupError(ValueError):
    """The bytes are no roll-up."""


def _every(ref: SeriesRef) -> bool:
    return True


def encode(rollup: Rollup) -> bytes:
    """Return the bytes of a roll-up."""
    buckets = rollup.buckets
    tables = (*_counters(rollup.counters), *_gauges(rollup.gauges), rollup.states.lasted_ms)
    exact = [np.full(len(table), table is rollup.counters.total) for table in tables]
    matrix = np.concatenate(tables, dtype=np.float64)
    numbers = number_matrix.packed(matrix, np.concatenate(exact))
    body = _BUCKETS.pack(buckets.start_ms, buckets.step_ms, buckets.count) + numbers
    head = rollup_head.encode(rollup)
    packed_head = bytes(cramjam.zstd.compress(head, _LEVEL))
    frame = _FRAME.pack(_VERSION, len(head), len(body), len(packed_head))
    return frame + packed_head + bytes(cramjam.zstd.compress(body, _LEVEL))


def decode(data: bytes, wants: Wants = _every) -> Rollup:
    """Return the roll-up of these bytes, or of the series that are wanted. Raises RollupError."""
    [found] = decode_all([data], wants)
    return found


def decode_all(rows: Sequence[bytes], wants: Wants = _every) -> Iterator[Rollup]:
    """Yield the roll-ups of rows, of the series that are wanted. Rows with the same series that
    follow each other in time become one roll-up. Raises RollupError.
    """
    try:
        framed = [_unframed(data) for data in rows]
        for head, same in groupby(framed, key=_head):
            yield from _SameSeries(head, wants).rollups(list(same))
    except MatrixError as error:
        raise RollupError(str(error)) from None


def shape_ids(rows: Sequence[bytes]) -> frozenset[int]:
    """Return the shapes that rows refer to; only heads are read. Raises RollupError."""
    try:
        heads = {id(head): head for head in (_head(_unframed(data)) for data in rows)}
    except MatrixError as error:
        raise RollupError(str(error)) from None
    return frozenset().union(*(head.shape_ids for head in heads.values()))


class _Framed(NamedTuple):
    """The parts of a row, still compressed."""

    packed_head: bytes
    head_size: int
    packed_body: memoryview
    body_size: int


class _Opened(NamedTuple):
    """The buckets and the numbers of a row."""

    buckets: Buckets
    matrix: PackedMatrix


def _unframed(data: bytes) -> _Framed:
    if len(data) < _FRAME.size or data[0] != _VERSION:
        raise MatrixError("the version is unknown")
    _, head_size, body_size, packed_size = _FRAME.unpack_from(data)
    body_at = _FRAME.size + packed_size
    return _Framed(data[_FRAME.size : body_at], head_size, memoryview(data)[body_at:], body_size)


def _head(row: _Framed) -> RollupHead:
    return rollup_head.decode(row.packed_head, row.head_size)


class _SameSeries:
    """Reads rows that have the same head: the wanted series of all of them at once."""

    def __init__(self, head: RollupHead, wants: Wants) -> None:
        self._head = head
        self._counters = _wanted(head.counters, wants)
        self._gauges = _wanted(head.gauges, wants)
        self._states = _wanted(head.states, wants)
        tables = (
            (len(head.counters), self._counters, _OF_COUNTERS),
            (len(head.gauges), self._gauges, _OF_GAUGES),
            (len(head.states), self._states, _OF_STATES),
        )
        self._chosen, self._rows = _places(tables)

    def rollups(self, rows: Sequence[_Framed]) -> Iterator[Rollup]:
        """Yield the roll-ups, some of them read at a time. Raises MatrixError."""
        each = max(row.body_size for row in rows) + 8 * len(self._chosen) * _USUAL_BUCKETS
        count = max(1, _AT_ONCE // each)
        for first in range(0, len(rows), count):
            some = [self._opened(row) for row in rows[first : first + count]]
            for run in _runs(some):
                yield self._read(run)

    def _opened(self, row: _Framed) -> _Opened:
        body = rollup_head.decompressed(row.packed_body, row.body_size, MAXIMUM_BYTES)
        if len(body) < _BUCKETS.size:
            raise MatrixError("the data ends too early")
        start_ms, step_ms, count = _BUCKETS.unpack_from(body)
        if not (0 < count <= MAXIMUM_BUCKETS and 0 < step_ms <= 2**40 and abs(start_ms) < 2**53):
            raise MatrixError("the buckets are impossible")
        if self._rows * count > MAXIMUM_NUMBERS:
            raise MatrixError("there are more numbers than a roll-up has")
        numbers = memoryview(body)[_BUCKETS.size :]
        matrix = number_matrix.opened(numbers, self._rows, count)
        return _Opened(Buckets(start_ms, step_ms, count), matrix)

    def _read(self, run: Sequence[_Opened]) -> Rollup:
        first = run[0].buckets
        numbers = number_matrix.unpack([row.matrix for row in run], self._chosen, first.count)
        joined = numbers.transpose(1, 0, 2).reshape(len(self._chosen), len(run) * first.count)
        gauges_at = _OF_COUNTERS * len(self._counters)
        states_at = gauges_at + _OF_GAUGES * len(self._gauges)
        gauges = _tables(joined[gauges_at:states_at], _OF_GAUGES)
        of_counters = [self._head.counters[row] for row in self._counters]
        of_gauges = [self._head.gauges[row] for row in self._gauges]
        of_states = [self._head.states[row] for row in self._states]
        values = self._head.values[self._states]
        return Rollup(
            Buckets(first.start_ms, first.step_ms, joined.shape[1]),
            _read_counters(of_counters, _tables(joined[:gauges_at], _OF_COUNTERS)),
            GaugeTable(of_gauges, _integers(gauges[0]), *gauges[1:]),
            StateTable(of_states, values, _integers(joined[states_at:])),
        )


def _runs(rows: Iterable[_Opened]) -> Iterator[list[_Opened]]:
    """Yield rows that follow each other without a gap, and have as many buckets."""
    run: list[_Opened] = []
    for row in rows:
        if run and not run[-1].buckets.goes_on_in(row.buckets):
            yield run
            run = []
        run.append(row)
    if run:
        yield run


def _wanted(refs: Sequence[SeriesRef], wants: Wants) -> Integers:
    return np.flatnonzero(np.fromiter(map(wants, refs), bool, len(refs)))


def _places(tables: Sequence[tuple[int, Integers, int]]) -> tuple[Integers, int]:
    """Return which rows of the matrix the chosen rows of tables are, and how many it has."""
    chosen, begin = [], 0
    for rows, wanted, matrices in tables:
        for _ in range(matrices):
            chosen.append(begin + wanted)
            begin += rows
    return np.concatenate(chosen), begin


def _tables(numbers: Floats, count: int) -> list[Floats]:
    """Return the tables [series, buckets] that lie one after another."""
    rows = len(numbers) // count
    return [numbers[place * rows : (place + 1) * rows] for place in range(count)]


def _integers(numbers: Floats) -> Integers:
    with np.errstate(invalid="ignore"):
        return np.asarray(numbers.astype(np.int64))


def _counters(table: CounterTable) -> Sequence[Floats | Integers]:
    mean = np.nan_to_num(table.mean())
    is_zero = (table.low <= 0) & (mean > 0)
    above = _steps(table.high, mean)
    below = np.where(is_zero, _ZERO, _steps(mean, table.low))
    return table.known_ms, table.gap_ms, table.resets, table.total, above, below


def _read_counters(refs: Sequence[SeriesRef], tables: Sequence[Floats]) -> CounterTable:
    known_ms, gap_ms, resets = (_integers(table) for table in tables[:3])
    total, above, below = tables[3:]
    mean = np.nan_to_num(CounterTable((), known_ms, gap_ms, total, below, above, resets).mean())
    with np.errstate(over="ignore", invalid="ignore"):
        high = mean * _factor(above)
        low = np.where(below == _ZERO, 0.0, mean / _factor(below))
    return CounterTable(refs, known_ms, gap_ms, total, low, high, resets)


def _steps(more: Floats, less: Floats) -> Floats:
    """Return how far one rate is above another, in steps of the scale, rounded up; 0 if not."""
    ratio = np.ones(more.shape)
    with np.errstate(over="ignore"):
        np.divide(more, less, out=ratio, where=(less > 0) & (more > less))
    steps = np.ceil(np.log2(ratio) * _STEPS - _ROUNDING)
    return np.clip(steps, 0.0, _ZERO)


def _factor(steps: Floats) -> Floats:
    return np.exp2(np.clip(steps, 0, _ZERO) / _STEPS)


def _gauges(table: GaugeTable) -> Sequence[Floats | Integers]:
    return table.known_ms, table.mean, table.low, table.high, table.last
