"""The form of the past that answers a question: fine enough, and far enough back."""

from __future__ import annotations

import pytest

from poller.domain.history.resolution import KeptSpans, Resolution, choose

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
NOW = 2_000 * DAY
KEPT = KeptSpans(35 * DAY, 400 * DAY, 730 * DAY)


@pytest.mark.parametrize(
    ("days", "step_ms", "expected"),
    [
        (1, None, Resolution.RAW),
        (5, None, Resolution.FIVE_MINUTES),
        (30, None, Resolution.HOUR),
        (400, None, Resolution.HOUR),
        (1, 5 * MINUTE, Resolution.FIVE_MINUTES),
        (30, 5 * MINUTE, Resolution.FIVE_MINUTES),
        (1, 30_000, Resolution.RAW),
        (100, MINUTE, Resolution.FIVE_MINUTES),
        (1, DAY, Resolution.HOUR),
        (3_000, None, Resolution.HOUR),
    ],
)
def test_the_form_follows_from_the_span_and_the_step(
    days: int, step_ms: int | None, expected: Resolution
) -> None:
    """A day is drawn from polls, a month from hours; a step is met as cheaply as possible."""
    assert choose(NOW - days * DAY, NOW, NOW, MINUTE, KEPT, step_ms) is expected


def test_a_form_that_is_not_kept_is_never_chosen() -> None:
    """With roll-ups switched off, polls answer as far back as they reach."""
    only_raw = KeptSpans(35 * DAY, 0, 0)
    assert choose(NOW - 90 * DAY, NOW, NOW, MINUTE, only_raw) is Resolution.RAW
    assert choose(NOW - 30 * DAY, NOW, NOW, MINUTE, only_raw) is Resolution.RAW
