"""A matrix of numbers in few bytes: rows that never change once, the others by differences.

Rows of whole numbers are exact, others have the precision of float32 unless all of it is asked for.
The bytes of the differences lie plane by plane, which compresses best.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from poller.domain.rollups.sample_columns import Floats, Integers

#: Whole numbers beyond this are not exact in a float64.
_EXACT = 2.0**53


Flags = NDArray[np.bool_]


class MatrixError(ValueError):
    """The bytes are no matrix of this size."""


#: How the numbers of a row are written. No enum: numpy takes long to compare with one.
_CONSTANT, _WHOLE, _FLOAT, _DOUBLE = range(4)


class Reader:
    """Reads bytes from the front. Never reads more than there is."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._at = 0

    def take(self, size: int) -> memoryview:
        """Return the next bytes. Raises MatrixError if there are fewer."""
        end = self._at + size
        if size < 0 or end > len(self._data):
            raise MatrixError("the data ends too early")
        taken = self._data[self._at : end]
        self._at = end
        return taken

    def array(self, kind: str, count: int) -> NDArray[np.generic]:
        """Return the next numbers, in little-endian."""
        dtype = np.dtype(kind)
        return np.frombuffer(self.take(dtype.itemsize * count), dtype)

    def number(self, kind: str) -> int:
        return int(self.array(kind, 1)[0])

    def check_end(self) -> None:
        """Raise MatrixError if bytes are left."""
        if self._at != len(self._data):
            raise MatrixError("there are bytes after the end")


class Size(NamedTuple):
    rows: int
    columns: int


def packed(matrix: Floats, exact: bool = False) -> bytes:
    """Return the bytes of a matrix of finite numbers."""
    kinds = _kinds(matrix, exact)
    constants = matrix[kinds == _CONSTANT]
    first = constants[:, :1] if constants.size else constants
    parts = [
        kinds.tobytes(),
        first.astype("<f8").tobytes(),
        _pack_whole(matrix[kinds == _WHOLE]),
        _planes(matrix[kinds == _FLOAT].astype("<f4").view("<u4"), 4),
        _planes(matrix[kinds == _DOUBLE].astype("<f8").view("<u8"), 8),
    ]
    return b"".join(parts)


def unpack(reader: Reader, size: Size, chosen: Flags) -> Floats:
    """Return the chosen rows of the matrix of these bytes. Raises MatrixError."""
    kinds = reader.array("u1", size.rows)
    if kinds.size and kinds.max() > _DOUBLE:
        raise MatrixError("there is no such kind of row")
    matrix = np.zeros((int(chosen.sum()), size.columns))
    chosen_kinds = kinds[chosen]

    constants = reader.array("<f8", int((kinds == _CONSTANT).sum()))
    matrix[chosen_kinds == _CONSTANT] = constants[chosen[kinds == _CONSTANT], None]
    of_whole = chosen[kinds == _WHOLE]
    matrix[chosen_kinds == _WHOLE] = _unpack_whole(reader, size.columns, of_whole)
    floats = _unpack_planes(reader, size.columns, chosen[kinds == _FLOAT], 4)
    matrix[chosen_kinds == _FLOAT] = floats.view("<f4")
    doubles = _unpack_planes(reader, size.columns, chosen[kinds == _DOUBLE], 8)
    matrix[chosen_kinds == _DOUBLE] = doubles.view("<f8")
    return matrix


def _kinds(matrix: Floats, exact: bool) -> NDArray[np.uint8]:
    is_whole = ((matrix == np.floor(matrix)) & (np.abs(matrix) < _EXACT)).all(axis=1)
    is_constant = (matrix == matrix[:, :1]).all(axis=1)
    other = _DOUBLE if exact else _FLOAT
    kinds = np.where(is_constant, _CONSTANT, np.where(is_whole, _WHOLE, other))
    return kinds.astype(np.uint8)


def _pack_whole(rows: Floats) -> bytes:
    if not rows.size:
        return b""
    differences: Integers = rows.astype(np.int64)
    differences[:, 1:] -= differences[:, :-1].copy()
    zigzag = ((differences << 1) ^ (differences >> 63)).view(np.uint64)
    used = (int(zigzag.max()).bit_length() + 7) // 8
    return bytes([used]) + _planes(zigzag, used)


def _unpack_whole(reader: Reader, columns: int, chosen: Flags) -> Floats:
    if not len(chosen):
        return np.zeros((0, columns))
    used = reader.number("u1")
    if used > 8:
        raise MatrixError("a number has more than eight bytes")
    zigzag = _unpack_planes(reader, columns, chosen, used, "<u8").astype(np.uint64)
    signs = -(zigzag & np.uint64(1)).astype(np.int64)
    differences = (zigzag >> np.uint64(1)).astype(np.int64) ^ signs
    return np.cumsum(differences, axis=1, dtype=np.int64).astype(np.float64)


def _planes(numbers: NDArray[np.unsignedinteger], used: int) -> bytes:
    """Return the first `used` bytes of each number: all first ones, all second ones, ..."""
    width = numbers.dtype.itemsize
    little = np.ascontiguousarray(numbers, numbers.dtype.newbyteorder("<"))
    flat = little.view(np.uint8).reshape(*numbers.shape, width)
    return np.ascontiguousarray(flat[:, :, :used].transpose(2, 0, 1)).tobytes()


def _unpack_planes(
    reader: Reader, columns: int, chosen: Flags, used: int, kind: str | None = None
) -> NDArray[np.generic]:
    """Return the numbers of the chosen rows; the planes have those of all."""
    width = np.dtype(kind).itemsize if kind else used
    planes = reader.array("u1", used * len(chosen) * columns)
    planes = planes.reshape(used, len(chosen), columns)[:, chosen]
    numbers = np.zeros((*planes.shape[1:], width), np.uint8)
    numbers[:, :, :used] = planes.transpose(1, 2, 0)
    return numbers.view(kind or f"<u{width}").reshape(planes.shape[1:])
