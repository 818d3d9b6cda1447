"""Columns of numbers as bytes that compress well, lossless to the bit.

Each column gets the form that leaves the smallest numbers: constant, whole numbers (after a factor
of ten) as differences, the low 32 bits of another column, or any float as XOR with the one before.
What is left is written by planes: the lowest byte of all numbers, then the next.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from poller.domain.history.block import Values
from poller.domain.history.byte_fields import (
    FieldReader,
    FieldWriter,
    unzigzag,
    widths_of,
    zigzag,
)

Wide = NDArray[np.int64]
Bits = NDArray[np.uint64]
Small = NDArray[np.uint8]

#: Forms of a column. A form from WHOLE on is WHOLE + 3 * exponent of ten + one of the three below.
CONSTANT_BITS, CONSTANT_WHOLE, XOR, TWIN, WHOLE = range(5)
#: The whole number stands for its value divided by ten to this power.
EXPONENTS = (0, 1, 2, 3, 4, 6, 9)
#: Differences from a typical step; differences of differences; the latter in 32 bits.
FROM_STEP, SECOND, SECOND_32 = range(3)

_EXACT = float(2**53)
_LOW_32 = 2**32


class DamagedColumns(ValueError):
    """The bytes are not those of columns."""


@dataclass(slots=True)
class _Plan:
    """The forms of all columns, and the numbers that each form leaves."""

    forms: Small
    heads: Wide  # the first number of each column
    steps: Wide
    twins: NDArray[np.uint32]  # by column: that with the same differences
    moving: list[NDArray[np.intp]] = field(default_factory=list)  # columns, as in `rests`
    rests: list[Bits] = field(default_factory=list)

    def leave(self, columns: NDArray[np.intp], rests: Bits) -> None:
        """Add the numbers that are left of some columns."""
        self.moving.append(columns)
        self.rests.append(rests)


def write(out: FieldWriter, values: Values) -> None:
    """Write the columns [series, polls]."""
    plan = _planned(np.ascontiguousarray(values))
    whole = plan.forms >= WHOLE
    out.raw(plan.forms)
    out.planes(plan.heads.view(np.uint64)[:, None], 8)
    out.planes(zigzag(plan.steps[whole])[:, None], 8)
    out.raw(plan.twins[plan.forms == TWIN])
    if not plan.moving:
        return
    order = np.argsort(np.concatenate(plan.moving))
    rests = np.concatenate(plan.rests)[order]
    widths = widths_of(rests)
    out.raw(widths)
    out.ragged_planes(rests, widths)


def read(source: FieldReader, series: int, polls: int) -> Values:
    """Return columns that `write` wrote. Raises DamagedColumns."""
    forms = source.raw(np.uint8, series)
    if forms.size and int(forms.max()) >= WHOLE + 3 * len(EXPONENTS):
        raise DamagedColumns("a column has an unknown form")
    heads = source.planes(series, 1, 8)[:, 0].view(np.int64)
    whole = forms >= WHOLE
    steps = np.zeros(series, dtype=np.int64)
    steps[whole] = unzigzag(source.planes(int(whole.sum()), 1, 8)[:, 0])
    twins = source.raw(np.uint32, int((forms == TWIN).sum()))
    rests = _read_rests(source, forms, polls)
    return _restored(forms, heads, steps, twins, rests, polls)


def _read_rests(source: FieldReader, forms: Small, polls: int) -> Bits:
    """The numbers that the forms left, [columns with any, polls - 1]; shorter ones begin later."""
    moving = int(((forms == XOR) | (forms >= WHOLE)).sum())
    if not moving or polls < 2:
        return np.zeros((moving, max(0, polls - 1)), dtype=np.uint64)
    widths = source.raw(np.uint8, moving)
    if int(widths.max()) > 8:
        raise DamagedColumns("a column is too wide")
    return source.ragged_planes(polls - 1, widths)


def _planned(values: Values) -> _Plan:
    series = len(values)
    bits = values.view(np.uint64)
    plan = _Plan(
        forms=np.zeros(series, dtype=np.uint8),
        heads=bits[:, 0].view(np.int64).copy(),
        steps=np.zeros(series, dtype=np.int64),
        twins=np.zeros(series, dtype=np.uint32),
    )
    constant = (bits == bits[:, :1]).all(axis=1)
    _plan_constants(plan, values, np.flatnonzero(constant))
    left = np.flatnonzero(~constant)
    for exponent in range(len(EXPONENTS)):
        if not left.size:
            return plan
        whole, fits = _whole(values[left], EXPONENTS[exponent])
        if fits.any():
            _plan_whole(plan, left[fits], whole[fits], exponent)
        left = left[~fits]
    if left.size:
        plan.forms[left] = XOR
        plan.leave(left, bits[left, 1:] ^ bits[left, :-1])
    return plan


def _plan_constants(plan: _Plan, values: Values, columns: NDArray[np.intp]) -> None:
    whole, fits = _whole(np.ascontiguousarray(values[columns, :1]), 0)
    chosen = columns[fits]
    plan.forms[chosen] = CONSTANT_WHOLE
    plan.heads[chosen] = whole[fits, 0]


def _whole(values: Values, exponent: int) -> tuple[Wide, NDArray[np.bool_]]:
    """The values times a power of ten as whole numbers, and which columns these restore."""
    with np.errstate(all="ignore"):
        scaled = np.rint(values * 10.0**exponent) if exponent else values
        whole = scaled.astype(np.int64)  # nonsense for a number that is too large
    restored = _unscaled(whole, exponent)
    same = restored.view(np.uint64) == values.view(np.uint64)
    small = np.abs(scaled).max(axis=1, initial=0.0) < _EXACT
    return whole, same.all(axis=1) & small


def _unscaled(whole: Wide, exponent: int) -> Values:
    floats = whole.astype(np.float64)
    return floats / 10.0**exponent if exponent else floats


def _plan_whole(plan: _Plan, columns: NDArray[np.intp], whole: Wide, exponent: int) -> None:
    first = whole[:, 1:] - whole[:, :-1]
    plan.heads[columns] = whole[:, 0]
    kept = np.arange(len(columns))
    if exponent == 0:
        kept = _without_twins(plan, columns, whole, first)
    if not len(kept):
        return
    _plan_differences(plan, columns[kept], first[kept], exponent, _wraps(whole[kept], first[kept]))


def _wraps(whole: Wide, first: Wide) -> NDArray[np.bool_]:
    """Which columns fit 32 bits and start over within them."""
    jumps = np.abs(first).max(axis=1) >= _LOW_32 // 2
    return np.asarray(_fits_32(whole) & jumps)


def _without_twins(
    plan: _Plan, columns: NDArray[np.intp], whole: Wide, first: Wide
) -> NDArray[np.intp]:
    """Plan the columns that are the low 32 bits of another; return the positions of the others.

    A switch counts the same octets in 32 and in 64 bits.
    """
    fits = _fits_32(whole)
    low = (first & (_LOW_32 - 1)).astype(np.uint64)
    sums = (low @ _weights(low.shape[1])).tolist()
    originals: dict[int, int] = {}
    pairs = []
    # A column of 64 bits comes first: it is never the twin.
    for position in np.argsort(fits, kind="stable").tolist():
        original = originals.setdefault(sums[position], position)
        if original != position and fits[position]:
            pairs.append((position, original))
    if not pairs:
        return np.arange(len(columns))
    twins, of = np.array(pairs, dtype=np.intp).T
    same = (low[twins] == low[of]).all(axis=1)  # equal sums may be a coincidence
    twins, of = twins[same], of[same]
    plan.forms[columns[twins]] = TWIN
    plan.twins[columns[twins]] = columns[of]
    return np.delete(np.arange(len(columns)), twins)


@lru_cache(maxsize=256)
def _weights(size: int) -> Bits:
    """Odd numbers that make the sums of different rows differ."""
    numbers = np.arange(1, size + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return numbers | np.uint64(1)


def _fits_32(whole: Wide) -> NDArray[np.bool_]:
    return np.asarray((whole.min(axis=1) >= 0) & (whole.max(axis=1) < _LOW_32))


def _plan_differences(
    plan: _Plan,
    columns: NDArray[np.intp],
    first: Wide,
    exponent: int,
    wraps: NDArray[np.bool_],
) -> None:
    """Choose differences from a typical step, or differences of differences, for each column."""
    any_wraps = bool(wraps.any())
    if any_wraps:
        first = np.where(wraps[:, None], _signed_32(first), first)
    middle = first.shape[1] // 2
    typical = np.partition(first, middle, axis=1)[:, middle]
    from_step = first - typical[:, None]
    second = np.zeros_like(first)
    np.subtract(first[:, 1:], first[:, :-1], out=second[:, 1:])
    if any_wraps:
        second = np.where(wraps[:, None], _signed_32(second), second)
    takes_second = wraps | (_size(second) < _size(from_step))
    forms = np.where(takes_second, SECOND, FROM_STEP)
    forms[wraps] = SECOND_32
    plan.forms[columns] = WHOLE + 3 * exponent + forms
    plan.steps[columns] = np.where(takes_second, first[:, 0], typical)
    plan.leave(columns, zigzag(np.where(takes_second[:, None], second, from_step)))


def _size(numbers: Wide) -> NDArray[np.float64]:
    return np.asarray(np.abs(numbers).sum(axis=1, dtype=np.float64))


def _signed_32(numbers: Wide) -> Wide:
    return (numbers & (_LOW_32 - 1)).astype(np.uint32).view(np.int32).astype(np.int64)


def _restored(
    forms: Small,
    heads: Wide,
    steps: Wide,
    twins: NDArray[np.uint32],
    rests: Bits,
    polls: int,
) -> Values:
    series = len(forms)
    numbers = np.repeat(heads[:, None], polls, axis=1)  # whole numbers, or bits of floats
    moving = np.flatnonzero((forms == XOR) | (forms >= WHOLE))
    is_xor = forms[moving] == XOR
    mixed = moving[is_xor]
    if mixed.size and polls > 1:
        column_bits = np.concatenate([heads[mixed].view(np.uint64)[:, None], rests[is_xor]], axis=1)
        numbers[mixed] = np.bitwise_xor.accumulate(column_bits, axis=1).view(np.int64)
    whole = moving[~is_xor]
    if whole.size and polls > 1:
        numbers[whole] = _summed(forms[whole], heads[whole], steps[whole], rests[~is_xor])
    _restore_twins(numbers, forms, heads, twins)
    values = numbers.view(np.float64).copy()
    is_number = (forms == CONSTANT_WHOLE) | (forms == TWIN)
    exponents = np.where(forms >= WHOLE, (forms.astype(np.int64) - WHOLE) // 3, -1)
    exponents[is_number] = 0
    for index in np.unique(exponents[exponents >= 0]):
        chosen = exponents == index
        values[chosen] = _unscaled(numbers[chosen], EXPONENTS[int(index)])
    return values.reshape(series, polls)


def _summed(forms: Small, heads: Wide, steps: Wide, rests: Bits) -> Wide:
    """Whole numbers of columns of differences."""
    how = (forms - WHOLE) % 3
    left = unzigzag(rests)
    from_step = how == FROM_STEP
    first = np.where(from_step[:, None], left, np.cumsum(left, axis=1)) + steps[:, None]
    sums = np.concatenate([heads[:, None], first], axis=1).cumsum(axis=1)
    return np.where((how == SECOND_32)[:, None], sums & (_LOW_32 - 1), sums)


def _restore_twins(numbers: Wide, forms: Small, heads: Wide, twins: NDArray[np.uint32]) -> None:
    columns = np.flatnonzero(forms == TWIN)
    if not columns.size:
        return
    if int(twins.max()) >= len(forms) or (forms[twins] < WHOLE).any():
        raise DamagedColumns("a column is the twin of none")
    moved = numbers[twins] - numbers[twins][:, :1]
    numbers[columns] = (heads[columns][:, None] + moved) & (_LOW_32 - 1)
