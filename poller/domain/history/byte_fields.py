"""Fields of bytes, written one after another and read back with every length checked."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Wide = NDArray[np.int64]
Bits = NDArray[np.uint64]
Small = NDArray[np.uint8]
Scalar = TypeVar("Scalar", bound=np.generic)

#: A larger number than each of these needs one more byte.
_BYTE_LIMITS = np.array([0, *(2 ** (8 * n) - 1 for n in range(1, 8))], dtype=np.uint64)


class TooShort(ValueError):
    """A field is longer than the bytes that are left."""


class FieldWriter:
    """Collects fields."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def raw(self, numbers: NDArray[Any]) -> None:
        """Write numbers as they are, little-endian."""
        little = numbers.dtype.newbyteorder("<")
        self._parts.append(numbers.astype(little, copy=False).tobytes())

    def planes(self, numbers: Bits, width: int) -> None:
        """Write the lowest byte of all numbers [rows, columns], then the next, up to the width."""
        planes = _bytes_of(numbers)[:, :, :width]
        self._parts.append(planes.transpose(2, 0, 1).tobytes())

    def ragged_planes(self, numbers: Bits, widths: Small) -> None:
        """Write planes of rows, of each row only as many bytes as its width."""
        planes = _bytes_of(numbers)
        for position in range(int(widths.max(initial=0))):
            self._parts.append(planes[widths > position, :, position].tobytes())

    def done(self) -> bytes:
        return b"".join(self._parts)


class FieldReader:
    """Reads fields. Every method raises TooShort when bytes are missing."""

    def __init__(self, data: bytes) -> None:
        self._bytes = np.frombuffer(data, dtype=np.uint8)
        self._at = 0

    @property
    def left(self) -> int:
        """Bytes that were not read."""
        return len(self._bytes) - self._at

    def raw(self, kind: type[Scalar], count: int) -> NDArray[Scalar]:
        """Read numbers of this kind."""
        little = np.dtype(kind).newbyteorder("<")
        taken = self._take(count * little.itemsize)
        return taken.view(little).astype(kind)

    def planes(self, rows: int, columns: int, width: int) -> Bits:
        """Read what `FieldWriter.planes` wrote."""
        taken = self._take(rows * columns * width).reshape(width, rows, columns)
        numbers = np.zeros((rows, columns, 8), dtype=np.uint8)
        numbers[:, :, :width] = taken.transpose(1, 2, 0)
        return _numbers_of(numbers)

    def ragged_planes(self, columns: int, widths: Small) -> Bits:
        """Read what `FieldWriter.ragged_planes` wrote."""
        if int(widths.sum(dtype=np.int64)) * columns > self.left:
            raise TooShort("a field is longer than the bytes that are left")
        numbers = np.zeros((len(widths), columns, 8), dtype=np.uint8)
        for position in range(int(widths.max(initial=0))):
            chosen = widths > position
            rows = int(chosen.sum())
            numbers[chosen, :, position] = self._take(rows * columns).reshape(rows, columns)
        return _numbers_of(numbers)

    def _take(self, size: int) -> Small:
        if size > self.left:
            raise TooShort("a field is longer than the bytes that are left")
        taken = self._bytes[self._at : self._at + size]
        self._at += size
        return taken.copy()


def zigzag(numbers: Wide) -> Bits:
    """Numbers of either sign as small numbers without one: 0, -1, 1, -2 become 0, 1, 2, 3."""
    return ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)


def unzigzag(numbers: Bits) -> Wide:
    """The reverse of `zigzag`."""
    signs = -(numbers & np.uint64(1)).view(np.int64)
    return (numbers >> np.uint64(1)).view(np.int64) ^ signs


def widths_of(numbers: Bits) -> Small:
    """Bytes that the largest number of each row needs, 0 to 8."""
    largest = numbers.max(axis=1, initial=0)
    widths: Small = np.searchsorted(_BYTE_LIMITS, largest, side="left").astype(np.uint8)
    return widths


def _bytes_of(numbers: Bits) -> Small:
    little = np.ascontiguousarray(numbers).astype("<u8", copy=False)
    return little.view(np.uint8).reshape(*numbers.shape, 8)


def _numbers_of(numbers: Small) -> Bits:
    return numbers.view("<u8").astype(np.uint64, copy=False)[:, :, 0]
