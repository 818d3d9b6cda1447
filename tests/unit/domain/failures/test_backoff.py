"""Back-off is right at the 1st, 5th, 55th and 10,000th failure."""

from __future__ import annotations

import pytest

from poller.domain.failures import backoff


@pytest.mark.parametrize(
    ("failures", "seconds"),
    [(0, 30), (1, 30), (2, 60), (5, 480), (6, 900), (55, 900), (10_000, 900)],
)
def test_exponential(failures: int, seconds: float) -> None:
    """30 s doubled up to 15 minutes, and never 0."""
    assert backoff.exponential(failures, 30, 900) == seconds
