"""Small bars: from zero to the highest, with gaps, and without losing a spike."""

from __future__ import annotations

import pytest

from poller.cli.output import sparkline


@pytest.mark.parametrize(
    ("values", "drawn"),
    [
        ([], ""),
        ([0, 0], "▁▁"),
        ([0, 50, 100], "▁▅█"),
        ([7], "█"),
        ([1, None, 1], "█┄█"),
        ([None], "┄"),
        ([1e-300, 1e300], "▁█"),
    ],
)
def test_bars_stand_on_zero(values: list[float | None], drawn: str) -> None:
    """A missing value is a gap, not a zero."""
    assert sparkline.draw(values, 10) == drawn


def test_values_that_share_a_bar_show_their_highest() -> None:
    """A gap appears only where all values are missing."""
    assert sparkline.draw([1, 8, 1, 1, None, None, None, 4], 4) == "█▂┄▅"
    assert len(sparkline.draw([1.0] * 1000, 24)) == 24
