"""Quantiles from buckets are within the promised 10 %."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from poller.domain.metrics import histogram


@given(st.floats(1, 1e7))
def test_a_bucket_holds_its_value(value: float) -> None:
    """The value lies below its bucket's upper edge, by at most 10 %."""
    edge = histogram.upper_ms(histogram.bucket(value))
    assert edge / 1.1 * 0.999 <= value <= edge * 1.001


def test_quantiles() -> None:
    """The median of 1..1000 is about 500, the 99th percentile about 990."""
    counts = Counter(histogram.bucket(v) for v in range(1, 1001))
    assert 500 <= histogram.quantile_ms(counts, 0.5) <= 560
    assert 990 <= histogram.quantile_ms(counts, 0.99) <= 1100
    assert histogram.quantile_ms({}, 0.5) == 0.0


def test_what_is_not_late_counts_as_zero() -> None:
    """Early and exact starts are no lateness."""
    assert histogram.bucket(-5) == histogram.bucket(0) == 0
    assert histogram.upper_ms(0) == 0.0
