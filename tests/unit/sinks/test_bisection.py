"""Bad parts of a request are found by sending its halves."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poller import errors
from poller.sinks import bisection


@given(st.sets(st.integers(0, 99), max_size=5))
def test_only_bad_items_are_left_out_and_order_holds(bad: set[int]) -> None:
    """Every good item is stored once, in order, and every bad one is told once."""
    stored: list[int] = []
    left_out: list[int] = []

    def request(items: Sequence[int]) -> errors.StoreError | None:
        if bad.intersection(items):
            return errors.StoreError("no")
        stored.extend(items)
        return None

    bisection.send(range(100), request, lambda item, _: left_out.append(item))
    assert stored == sorted(set(range(100)) - bad)
    assert left_out == sorted(bad)


def test_a_store_that_refuses_everything_gets_few_requests() -> None:
    """A wrong address must not cost a request for every line."""
    requests: list[int] = []

    def request(items: Sequence[int]) -> errors.StoreError | None:
        requests.append(len(items))
        return errors.StoreError("never")

    with pytest.raises(errors.StoreError, match="never"):
        bisection.send(range(5000), request, lambda _item, _refusal: None)
    assert len(requests) <= bisection.MAX_REQUESTS
