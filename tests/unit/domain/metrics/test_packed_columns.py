"""Columns of packed polls give the same values and the same verdict as a loop over floats."""

from __future__ import annotations

import math
from operator import lt

from hypothesis import given
from hypothesis import strategies as st

from poller.domain.metrics.packed_columns import PackedColumns, may_have_fallen
from poller.domain.metrics.reading import pack, unpack

NUMBERS = st.floats(min_value=0.0, allow_infinity=True) | st.integers(0, 2**64).map(float)


@given(st.lists(NUMBERS, max_size=40), st.data())
def test_columns_are_cut_out_in_their_order(values: list[float], data: st.DataObject) -> None:
    """Runs, gaps, no column and all of them, in two groups."""
    chosen = data.draw(st.lists(st.sampled_from("ab-"), min_size=len(values)))
    groups = [
        [column for column in range(len(values)) if chosen[column] == group] for group in "ab"
    ]
    cut = PackedColumns(*groups).cut(pack(values))
    assert list(unpack(cut)) == [values[column] for group in groups for column in group]


@given(st.lists(st.tuples(NUMBERS, NUMBERS), max_size=30))
def test_a_fall_is_seen_wherever_it_is(pairs: list[tuple[float, float]]) -> None:
    """Numbers from 0 on, infinity included, are compared exactly."""
    before = [one for one, _ in pairs]
    now = [two for _, two in pairs]
    expected = any(map(lt, now, before))
    assert may_have_fallen(pack(before), pack(now)) == expected


def test_what_cannot_be_compared_may_have_fallen() -> None:
    """A negative value, and a number after none; a value that is missing twice did not fall."""
    assert may_have_fallen(pack([5.0, -1.0]), pack([6.0, 2.0]))
    assert may_have_fallen(pack([5.0, 1.0]), pack([6.0, -2.0]))
    assert may_have_fallen(pack([math.nan]), pack([1.0]))
    assert not may_have_fallen(pack([math.nan, 1.0]), pack([math.nan, 1.0]))
