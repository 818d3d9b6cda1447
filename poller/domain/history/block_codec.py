"""A block as bytes and back, lossless to the bit: about half a byte a sample of an ordinary switch.

The first byte is the version of the form, the next four are the size before compression; zstd of
the fields follows. Bytes that are damaged are refused, and never make much memory.
"""

from __future__ import annotations

import struct

import cramjam
import numpy as np

from poller.domain.history import column_codec
from poller.domain.history.block import Block, Instants, Segment
from poller.domain.history.byte_fields import (
    FieldReader,
    FieldWriter,
    TooShort,
    unzigzag,
    widths_of,
    zigzag,
)
from poller.domain.history.column_codec import DamagedColumns

VERSION = 1
#: Level of zstd: 6 saves 1 % and takes three times as long.
LEVEL = 2
#: Values of a block at most. A larger one is refused, also when it is read.
MOST_VALUES = 2**22

_FRAME = struct.Struct("<BI")
#: Fields hold at most all values in full, and some words for each series.
_MOST_BYTES = 32 * MOST_VALUES


class BlockError(ValueError):
    """The bytes are not those of a block, or the block is too large."""


def encode(block: Block) -> bytes:
    """Return the bytes of a block. Raises BlockError if it is too large."""
    if sum(segment.values.size + segment.polls for segment in block.segments) > MOST_VALUES:
        raise BlockError("the block is too large")
    fields = FieldWriter()
    fields.raw(np.array([len(block.segments)], dtype=np.uint32))
    for segment in block.segments:
        fields.raw(np.array([segment.shape_id], dtype=np.int64))
        fields.raw(np.array([segment.series, segment.polls], dtype=np.uint32))
        _write_instants(fields, segment.at_ms)
        column_codec.write(fields, segment.values)
    return _framed(fields.done())


def decode(data: bytes) -> Block:
    """Return the block of these bytes. Raises BlockError."""
    source = FieldReader(_decompressed(data))
    try:
        count = int(source.raw(np.uint32, 1)[0])
        if not 0 < count <= source.left:
            raise BlockError("the block has no segment, or too many")
        budget = MOST_VALUES
        segments = []
        for _ in range(count):
            segment = _read_segment(source, budget)
            budget -= segment.values.size + segment.polls
            segments.append(segment)
    except (TooShort, DamagedColumns) as error:
        raise BlockError(f"the block is damaged: {error}") from None
    if source.left:
        raise BlockError("the block is damaged: bytes are left over")
    return Block(tuple(segments))


def _read_segment(source: FieldReader, budget: int) -> Segment:
    shape_id = int(source.raw(np.int64, 1)[0])
    series, polls = source.raw(np.uint32, 2).tolist()
    if polls == 0 or series * polls + polls > budget:
        raise BlockError("a segment of the block has no polls, or too many values")
    at_ms = _read_instants(source, polls)
    values = column_codec.read(source, series, polls)
    return Segment(shape_id, at_ms, values)


def _framed(fields: bytes) -> bytes:
    compressed = bytes(cramjam.zstd.compress(fields, LEVEL))
    return _FRAME.pack(VERSION, len(fields)) + compressed


def _decompressed(data: bytes) -> bytes:
    if len(data) < _FRAME.size:
        raise BlockError("the block is too short")
    version, size = _FRAME.unpack_from(data)
    if version != VERSION:
        raise BlockError(f"the block has the version {version}, which this program does not know")
    if size > _MOST_BYTES:
        raise BlockError("the block is too large")
    out = bytearray(size)
    try:
        written = cramjam.zstd.decompress_into(data[_FRAME.size :], out)
    except cramjam.DecompressionError as error:
        raise BlockError(f"the block is damaged: {error}") from None
    if written != size:
        raise BlockError("the block is damaged: its size is another")
    return bytes(out)


def _write_instants(fields: FieldWriter, at_ms: Instants) -> None:
    """Write the first instant, the first step, and how the steps change."""
    steps = np.diff(at_ms)
    changes = zigzag(np.diff(steps))[None, :]
    width = widths_of(changes)
    fields.raw(np.array([at_ms[0], *steps[:1]], dtype=np.int64))
    fields.raw(width)
    fields.planes(changes, int(width[0]))


def _read_instants(source: FieldReader, polls: int) -> Instants:
    first = source.raw(np.int64, min(polls, 2))
    width = int(source.raw(np.uint8, 1)[0])
    if width > 8:
        raise BlockError("the block is damaged: its instants are too wide")
    changes = unzigzag(source.planes(1, max(0, polls - 2), width)[0])
    steps = np.concatenate([first[1:], changes]).cumsum()
    at_ms = np.concatenate([first[:1], steps]).cumsum()
    if (at_ms[1:] <= at_ms[:-1]).any():
        raise BlockError("the block is damaged: its instants are out of order")
    return at_ms
