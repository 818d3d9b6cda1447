"""Small bars: from zero to the highest, holes shown, no spike lost."""

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
    """What is not known is no zero."""
    assert sparkline.draw(values, 10) == drawn


def test_what_shares_a_bar_shows_its_highest() -> None:
    """A hole only where nothing is known."""
    assert sparkline.draw([1, 8, 1, 1, None, None, None, 4], 4) == "█▂┄▅"
    assert len(sparkline.draw([1.0] * 1000, 24)) == 24
