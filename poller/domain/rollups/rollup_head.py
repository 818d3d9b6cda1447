"""The head of a stored roll-up: which series it has.

The head is the same from day to day while the shape is, so one that was read is remembered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import cramjam
import numpy as np

from poller.domain.history.byte_fields import FieldReader, FieldWriter, TooShort
from poller.domain.rollups.number_matrix import MatrixError
from poller.domain.rollups.rollup import Rollup
from poller.domain.rollups.sample_columns import Floats, SeriesRef

#: What a stored roll-up may claim at most.
MAXIMUM_ROWS = 200_000
MAXIMUM_BYTES = 16 * MAXIMUM_ROWS * 3


@dataclass(frozen=True, slots=True)
class RollupHead:
    """The series of each table, in order, and the value of each row of states."""

    counters: Sequence[SeriesRef]
    gauges: Sequence[SeriesRef]
    states: Sequence[SeriesRef]
    values: Floats

    @property
    def shape_ids(self) -> frozenset[int]:
        """The shapes that the series are of."""
        return frozenset(ref.shape_id for ref in (*self.counters, *self.gauges, *self.states))


def encode(rollup: Rollup) -> bytes:
    """Return the head of a roll-up, not compressed."""
    out = FieldWriter()
    for refs in (rollup.counters.refs, rollup.gauges.refs, rollup.states.refs):
        _write_refs(out, refs)
    out.raw(rollup.states.values.astype(np.float64))
    return out.done()


@lru_cache(maxsize=16)
def decode(compressed: bytes, size: int) -> RollupHead:
    """Return the head of compressed bytes. Raises MatrixError."""
    source = FieldReader(bytes(decompressed(compressed, size, MAXIMUM_BYTES)))
    try:
        counters, gauges, states = (_read_refs(source) for _ in range(3))
        values = source.raw(np.float64, len(states))
    except TooShort as error:
        raise MatrixError(str(error)) from None
    if source.left:
        raise MatrixError("there are bytes after the end")
    return RollupHead(counters, gauges, states, values)


def decompressed(data: bytes | memoryview, size: int, most: int) -> bytearray:
    """Return the bytes that zstd made `data` of, exactly `size`. Raises MatrixError."""
    if size > most:
        raise MatrixError(f"{size} bytes are more than a roll-up has")
    whole = bytearray(size)
    try:
        written = cramjam.zstd.decompress_into(data, whole)
    except cramjam.DecompressionError:
        raise MatrixError("the data is damaged") from None
    if written != size:
        raise MatrixError("the data ends too early")
    return whole


def _write_refs(out: FieldWriter, refs: Sequence[SeriesRef]) -> None:
    """Write the shapes, then the shape and the index of each series."""
    shape_ids = list(dict.fromkeys(ref.shape_id for ref in refs))
    places = {shape_id: place for place, shape_id in enumerate(shape_ids)}
    indexes = np.array([ref.index for ref in refs], np.int32)
    out.raw(np.array([len(refs), len(shape_ids)], np.uint32))
    out.raw(np.array(shape_ids, np.int64))
    out.raw(np.array([places[ref.shape_id] for ref in refs], np.uint16))
    out.raw(np.diff(indexes, prepend=np.int32(0)))


def _read_refs(source: FieldReader) -> list[SeriesRef]:
    count, shape_count = source.raw(np.uint32, 2).tolist()
    if count > MAXIMUM_ROWS:
        raise MatrixError(f"{count} series are more than a target has")
    shape_ids = source.raw(np.int64, shape_count).tolist()
    shapes = source.raw(np.uint16, count).tolist()
    indexes = np.cumsum(source.raw(np.int32, count), dtype=np.int64).tolist()
    if count and (max(shapes) >= len(shape_ids) or min(indexes) < 0):
        raise MatrixError("a series has no place")
    return [
        SeriesRef(shape_ids[shape], index) for shape, index in zip(shapes, indexes, strict=True)
    ]
