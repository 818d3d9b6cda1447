"""A roll-up in few bytes, and back. Bytes that are no roll-up are refused, and cost little memory.

A peak is written as a step of a scale above the mean (and a low one below it), rounded outwards:
0.14 % apart, so that a stored peak is never below the real one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import cramjam
import numpy as np

from poller.domain.rollups import number_matrix
from poller.domain.rollups.number_matrix import MatrixError, Reader, Size
from poller.domain.rollups.rollup import Buckets, CounterTable, GaugeTable, Rollup, StateTable
from poller.domain.rollups.sample_columns import Floats, Integers, SeriesRef

_VERSION = 1
_LEVEL = 3
#: Steps of the scale for each doubling, and the end of the scale: below a mean it is zero.
_STEPS = 512
_ZERO = 65_535
#: A step that rounding error made a little too long is the same step.
_ROUNDING = 1e-6
#: What a stored roll-up may claim at most.
MAXIMUM_BYTES = 64 * 1024 * 1024
MAXIMUM_ROWS = 200_000
MAXIMUM_BUCKETS = 10_000


class RollupError(ValueError):
    """The bytes are no roll-up."""


def _every(ref: SeriesRef) -> bool:
    return True


def encode(rollup: Rollup) -> bytes:
    """Return the bytes of a roll-up."""
    buckets = rollup.buckets
    head = np.array([buckets.start_ms, buckets.step_ms, buckets.count], "<i8").tobytes()
    body = b"".join(
        (head, _counters(rollup.counters), _gauges(rollup.gauges), _states(rollup.states))
    )
    size = len(body).to_bytes(4, "little")
    return bytes([_VERSION]) + size + bytes(cramjam.zstd.compress(body, _LEVEL))


def decode(data: bytes, wants: Callable[[SeriesRef], bool] = _every) -> Rollup:
    """Return the roll-up of these bytes, or of the series that are wanted. Raises RollupError."""
    reader = Reader(memoryview(_body(data)))
    try:
        start_ms, step_ms, count = reader.array("<i8", 3).tolist()
        if not (0 < count <= MAXIMUM_BUCKETS and 0 < step_ms <= 2**40 and abs(start_ms) < 2**53):
            raise RollupError("the buckets are impossible")
        counters = _read_counters(_Rows(reader, count, wants))
        gauges = _read_gauges(_Rows(reader, count, wants))
        states = _read_states(_Rows(reader, count, wants))
        reader.check_end()
    except MatrixError as error:
        raise RollupError(str(error)) from None
    return Rollup(Buckets(start_ms, step_ms, count), counters, gauges, states)


class _Rows:
    """Reads the matrices of a table: the rows of series that are wanted."""

    def __init__(self, reader: Reader, count: int, wants: Callable[[SeriesRef], bool]) -> None:
        refs = _read_refs(reader)
        self._reader = reader
        self._size = Size(len(refs), count)
        self._chosen = np.fromiter(map(wants, refs), bool, len(refs))
        self.refs = [ref for ref, is_chosen in zip(refs, self._chosen, strict=True) if is_chosen]

    def floats(self) -> Floats:
        return number_matrix.unpack(self._reader, self._size, self._chosen)

    def integers(self) -> Integers:
        with np.errstate(invalid="ignore"):
            return np.asarray(self.floats().astype(np.int64))

    def column(self) -> Floats:
        """Return one number for each row."""
        numbers: Floats = self._reader.array("<f8", self._size.rows).astype(np.float64)
        return np.asarray(numbers[self._chosen])


def _body(data: bytes) -> bytearray:
    if len(data) < 5 or data[0] != _VERSION:
        raise RollupError("the version is unknown")
    size = int.from_bytes(data[1:5], "little")
    if size > MAXIMUM_BYTES:
        raise RollupError(f"{size} bytes are more than a roll-up has")
    body = bytearray(size)
    try:
        written = cramjam.zstd.decompress_into(data[5:], body)
    except cramjam.DecompressionError:
        raise RollupError("the data is damaged") from None
    if written != size:
        raise RollupError("the data ends too early")
    return body


def _counters(table: CounterTable) -> bytes:
    mean = np.nan_to_num(table.mean())
    is_zero = (table.low <= 0) & (mean > 0)
    return _refs(table.refs) + b"".join(
        (
            number_matrix.packed(table.known_ms.astype(np.float64)),
            number_matrix.packed(table.gap_ms.astype(np.float64)),
            number_matrix.packed(table.resets.astype(np.float64)),
            number_matrix.packed(table.total, exact=True),
            number_matrix.packed(_steps(table.high, mean)),
            number_matrix.packed(np.where(is_zero, _ZERO, _steps(mean, table.low))),
        )
    )


def _read_counters(rows: _Rows) -> CounterTable:
    known_ms, gap_ms, resets = rows.integers(), rows.integers(), rows.integers()
    total, above, below = rows.floats(), rows.floats(), rows.floats()
    table = CounterTable(rows.refs, known_ms, gap_ms, total, below, above, resets)
    mean = np.nan_to_num(table.mean())
    with np.errstate(over="ignore", invalid="ignore"):
        table.high[:] = mean * _factor(above)
        table.low[:] = np.where(below == _ZERO, 0.0, mean / _factor(below))
    return table


def _steps(more: Floats, less: Floats) -> Floats:
    """Return how far one rate is above another, in steps of the scale, rounded up; 0 if not."""
    ratio = np.ones(more.shape)
    with np.errstate(over="ignore"):
        np.divide(more, less, out=ratio, where=(less > 0) & (more > less))
    steps = np.ceil(np.log2(ratio) * _STEPS - _ROUNDING)
    return np.clip(steps, 0.0, _ZERO)


def _factor(steps: Floats) -> Floats:
    return np.exp2(np.clip(steps, 0, _ZERO) / _STEPS)


def _gauges(table: GaugeTable) -> bytes:
    return _refs(table.refs) + b"".join(
        (
            number_matrix.packed(table.known_ms.astype(np.float64)),
            number_matrix.packed(table.mean),
            number_matrix.packed(table.low),
            number_matrix.packed(table.high),
            number_matrix.packed(table.last),
        )
    )


def _read_gauges(rows: _Rows) -> GaugeTable:
    known_ms = rows.integers()
    mean, low, high, last = (rows.floats() for _ in range(4))
    return GaugeTable(rows.refs, known_ms, mean, low, high, last)


def _states(table: StateTable) -> bytes:
    values = table.values.astype("<f8").tobytes()
    return _refs(table.refs) + values + number_matrix.packed(table.lasted_ms.astype(np.float64))


def _read_states(rows: _Rows) -> StateTable:
    return StateTable(rows.refs, rows.column(), rows.integers())


def _refs(refs: Sequence[SeriesRef]) -> bytes:
    """Return the references: the shapes, then the shape and the index of each series."""
    shape_ids = list(dict.fromkeys(ref.shape_id for ref in refs))
    places = {shape_id: place for place, shape_id in enumerate(shape_ids)}
    shapes = np.array([places[ref.shape_id] for ref in refs], "<u2")
    indexes = np.array([ref.index for ref in refs], "<i4")
    return b"".join(
        (
            len(refs).to_bytes(4, "little"),
            len(shape_ids).to_bytes(2, "little"),
            np.array(shape_ids, "<i8").tobytes(),
            shapes.tobytes(),
            np.diff(indexes, prepend=0).astype("<i4").tobytes(),
        )
    )


def _read_refs(reader: Reader) -> list[SeriesRef]:
    count = reader.number("<u4")
    if count > MAXIMUM_ROWS:
        raise RollupError(f"{count} series are more than a target has")
    shape_ids = reader.array("<i8", reader.number("<u2")).tolist()
    shapes = reader.array("<u2", count).tolist()
    indexes = np.cumsum(reader.array("<i4", count), dtype=np.int64).tolist()
    if count and (max(shapes) >= len(shape_ids) or min(indexes) < 0):
        raise RollupError("a series has no place")
    return [
        SeriesRef(shape_ids[shape], index) for shape, index in zip(shapes, indexes, strict=True)
    ]
