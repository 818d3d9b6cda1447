"""A matrix of numbers in few bytes, of which single rows can be read.

Each row has the form that suits it. Rows that never change are written once, rows of whole numbers
by exact differences, others with the precision of float32 unless all of it is asked for or a number
is beyond float32. Rows of one form lie together, each with its lowest bytes first.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from poller.domain.history.byte_fields import unzigzag, widths_of, zigzag
from poller.domain.rollups.sample_columns import Floats, Integers

#: Whole numbers beyond this are not exact in a float64.
_EXACT = 2.0**53
#: Float32 has seven digits of numbers between these two.
_LEAST_FLOAT = float(np.finfo(np.float32).tiny)
_MOST_FLOAT = float(np.finfo(np.float32).max)

#: Forms of a row: zeros; whole numbers of 1 to 8 bytes; floats; one number for all columns.
_ZEROS = 0
_WIDEST = 8
_FLOAT, _DOUBLE, _CONSTANT = range(_WIDEST + 1, _WIDEST + 4)

Forms = NDArray[np.uint8]
Flags = NDArray[np.bool_]


class MatrixError(ValueError):
    """The bytes are no matrix of this size."""


class PackedMatrix(NamedTuple):
    """The form of each row, and the bytes of all rows."""

    forms: Forms
    data: NDArray[np.uint8]


def packed(matrix: Floats, exact: Flags) -> bytes:
    """Return the bytes of a matrix of finite numbers. Rows that are `exact` lose no bit."""
    forms = np.where(exact | _is_beyond_float(matrix), _DOUBLE, _FLOAT).astype(np.uint8)
    is_constant = (matrix == matrix[:, :1]).all(axis=1)
    forms[is_constant] = np.where(matrix[is_constant, 0] == 0, _ZEROS, _CONSTANT)
    moving = np.flatnonzero(~is_constant)
    whole = moving[_is_whole(matrix[moving])]
    differences = _differences(matrix[whole])
    forms[whole] = widths_of(differences)
    parts = [forms.tobytes()]
    for width in range(1, _WIDEST + 1):
        parts.append(_planes(differences[forms[whole] == width], width))
    parts.append(_planes(matrix[forms == _FLOAT].astype("<f4"), 4))
    parts.append(_planes(matrix[forms == _DOUBLE].astype("<f8"), 8))
    parts.append(matrix[forms == _CONSTANT, 0].astype("<f8").tobytes())
    return b"".join(parts)


def opened(data: memoryview, rows: int, columns: int) -> PackedMatrix:
    """Return the matrix of these bytes, checked but not unpacked. Raises MatrixError."""
    whole = np.frombuffer(data, np.uint8)
    forms = whole[:rows]
    if len(forms) < rows:
        raise MatrixError("the data ends too early")
    if rows and int(forms.max()) > _CONSTANT:
        raise MatrixError("there is no such form of a row")
    counts = np.bincount(forms, minlength=_CONSTANT + 1)
    if int(counts @ _sizes(columns)) != len(whole) - rows:
        raise MatrixError("the data has another size")
    return PackedMatrix(forms, whole[rows:])


def unpack(matrices: Sequence[PackedMatrix], chosen: Integers, columns: int) -> Floats:
    """Return the chosen rows of matrices of one size: [matrices, chosen, columns]."""
    forms = np.stack([each.forms for each in matrices])
    starts = _starts(forms, columns)[:, chosen]
    lengths = [len(each.data) for each in matrices]
    starts += np.cumsum([0, *lengths[:-1]])[:, None]
    data = matrices[0].data
    if len(matrices) > 1:
        data = np.concatenate([each.data for each in matrices])
    forms = forms[:, chosen]
    numbers = np.zeros((*forms.shape, columns))
    for form in np.unique(forms).tolist():
        if form != _ZEROS:
            places = forms == form
            numbers[places] = _unpacked(data, starts[places], form, columns)
    return numbers


@lru_cache(maxsize=8)
def _sizes(columns: int) -> Integers:
    """Return the bytes of a row by its form."""
    whole = [width * columns for width in range(_WIDEST + 1)]
    return np.array([*whole, 4 * columns, 8 * columns, 8], np.int64)


def _starts(forms: NDArray[np.uint8], columns: int) -> Integers:
    """Return where each row begins [matrices, rows]: rows of one form lie together."""
    order = np.argsort(forms, axis=1, kind="stable")
    lengths = _sizes(columns)[np.take_along_axis(forms, order, axis=1)]
    starts = np.empty_like(lengths)
    np.put_along_axis(starts, order, np.cumsum(lengths, axis=1) - lengths, axis=1)
    return starts


def _is_beyond_float(rows: Floats) -> Flags:
    size = np.abs(rows)
    is_fit = (size == 0) | ((size >= _LEAST_FLOAT) & (size <= _MOST_FLOAT))
    return np.asarray(~is_fit.all(axis=1))


def _is_whole(rows: Floats) -> Flags:
    return np.asarray(((rows == np.floor(rows)) & (np.abs(rows) < _EXACT)).all(axis=1))


def _differences(rows: Floats) -> NDArray[np.uint64]:
    """Return whole numbers as differences without a sign; the first one is the number itself."""
    whole = rows.astype(np.int64)
    whole[:, 1:] -= whole[:, :-1].copy()
    return zigzag(whole)


def _planes(numbers: NDArray[np.generic], width: int) -> bytes:
    """Return the lowest bytes of the numbers of a row, then the next ones, then the next row."""
    rows, columns = numbers.shape
    little = np.ascontiguousarray(numbers, numbers.dtype.newbyteorder("<"))
    as_bytes = little.view(np.uint8).reshape(rows, columns, numbers.dtype.itemsize)
    return as_bytes[:, :, :width].transpose(0, 2, 1).tobytes()


def _unpacked(data: NDArray[np.uint8], starts: Integers, form: int, columns: int) -> Floats:
    """Return the rows of one form that begin at these places."""
    if form == _CONSTANT:
        return _numbers(data, starts, 8, 1, "<f8").astype(np.float64)
    if form == _FLOAT:
        return _numbers(data, starts, 4, columns, "<f4").astype(np.float64)
    if form == _DOUBLE:
        return _numbers(data, starts, 8, columns, "<f8").astype(np.float64)
    differences = unzigzag(_numbers(data, starts, form, columns, "<u8").astype(np.uint64))
    return np.cumsum(differences, axis=1, dtype=np.int64).astype(np.float64)


def _numbers(
    data: NDArray[np.uint8], starts: Integers, width: int, columns: int, kind: str
) -> NDArray[np.generic]:
    planes = data[starts[:, None] + np.arange(width * columns)]
    as_bytes = np.zeros((len(starts), columns, np.dtype(kind).itemsize), np.uint8)
    as_bytes[:, :, :width] = planes.reshape(-1, width, columns).transpose(0, 2, 1)
    return as_bytes.view(kind)[:, :, 0]
