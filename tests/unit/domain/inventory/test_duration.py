"""Durations as operators write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poller import errors
from poller.domain.inventory import duration


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("60s", 60_000),
        ("5m", 300_000),
        ("1h30m", 5_400_000),
        (90, 90_000),
        ("90", 90_000),
        (1.5, 1_500),
        ("1.5s", 1_500),
        ("500ms", 500),
        ("1d", 86_400_000),
        ("0", 0),
        (" 5s ", 5_000),
    ],
)
def test_what_is_understood(text: str | float, expected: int) -> None:
    """Bare numbers are seconds."""
    assert duration.parse_ms(text) == expected


@given(st.integers(min_value=0, max_value=10**12))
def test_a_formatted_duration_is_read_back(milliseconds: int) -> None:
    """Exports can be imported."""
    assert duration.parse_ms(duration.format_ms(milliseconds)) == milliseconds


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("5 min", "write 5m or 300s"),
        ("2 hours", "write 2h or 7200s"),
        ("10 sec", "write 10s"),
        ("5x", "write 60s, 5m or 1h30m"),
        ("", "write 60s, 5m or 1h30m"),
        ("-5s", "write 60s, 5m or 1h30m"),
        ("5m 3", "write 60s, 5m or 1h30m"),
    ],
)
def test_an_invalid_duration_has_a_hint_with_the_right_form(text: str, hint: str) -> None:
    """The hint has the right form of the input where it is clear."""
    with pytest.raises(errors.InvalidInput, match="is not a duration") as caught:
        duration.parse_ms(text)
    assert caught.value.hint == hint


@pytest.mark.parametrize("text", [True, None, [5]])
def test_other_types_are_no_durations(text: object) -> None:
    """YAML's `yes` is no interval."""
    with pytest.raises(errors.InvalidInput):
        duration.parse_ms(text)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["999ms", "0", "32d"])
def test_intervals_have_bounds(text: str) -> None:
    """Both bounds are in the hint."""
    with pytest.raises(errors.InvalidInput) as caught:
        duration.interval_ms(text)
    assert caught.value.hint == "choose 1s to 31d"


@given(st.integers(min_value=1_000, max_value=duration.MAX_INTERVAL_MS))
def test_the_default_timeout_always_fits(interval: int) -> None:
    """A default must never be refused."""
    timeout = duration.default_timeout_ms(interval)
    assert 0 < timeout < interval
    assert timeout <= 10_000


def test_a_timeout_of_nothing_is_refused() -> None:
    """Zero would fail every poll."""
    with pytest.raises(errors.InvalidInput):
        duration.timeout_ms("0s")


@pytest.mark.parametrize(
    ("duration_ms", "expected"),
    [
        (0, "0 ms"),
        (850, "850 ms"),
        (1_000, "1 s"),
        (8_312, "8.3 s"),
        (59_949, "59.9 s"),
        (59_950, "1 m"),
        (200_000, "3 m 20 s"),
        (3_599_400, "59 m 59 s"),
        (3_599_500, "1 h"),
        (15_000_000, "4 h 10 m"),
        (86_369_000, "23 h 59 m"),
        (86_370_000, "1 d"),
        (270_000_000, "3 d 3 h"),
    ],
)
def test_durations_in_a_sentence(duration_ms: int, expected: str) -> None:
    """Two units at most, and never sixty of the smaller one."""
    assert duration.rounded_text(duration_ms) == expected
