"""Numbers, durations and instants as texts."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poller.presentation import formatting


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (9_999, "9,999"), (12_345, "12.3 k"), (999_960, "1 M"), (4_812_034, "4.81 M")],
)
def test_counts_are_exact_up_to_four_digits(number: int, text: str) -> None:
    """Larger counts have three significant digits and a unit."""
    assert formatting.count(number) == text


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "0 ms"),
        (0.42, "0.42 ms"),
        (850, "850 ms"),
        (999.7, "1 s"),
        (1_240, "1.24 s"),
        (48_100, "48.1 s"),
        (59_990, "1 m 0 s"),
        (200_000, "3 m 20 s"),
        (15_000_000, "4 h 10 m"),
        (1_047_600_000, "12 d 3 h"),
    ],
)
def test_durations_have_fitting_units(ms: float, text: str) -> None:
    """A duration never shows 60 of a smaller unit."""
    assert formatting.duration(ms) == text


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [
        (0, 100, "0 %"),
        (100, 100, "100 %"),
        (99_999, 100_000, "99.99 %"),
        (1, 10_000_000, "0.01 %"),
        (1, 0, "–"),
    ],
)
def test_a_share_is_never_rounded_to_all_or_none(part: int, whole: int, text: str) -> None:
    """Only the whole is 100 % and only nothing is 0 %; a share of nothing is a dash."""
    assert formatting.share(part, whole) == text


def test_memory_is_counted_in_powers_of_1024() -> None:
    """The units are MiB and GiB."""
    assert [formatting.size(n) for n in (512, 195_000_000, 3_435_973_837)] == [
        "512 B",
        "186 MiB",
        "3.2 GiB",
    ]


def test_rates_have_a_unit() -> None:
    """A rate is scaled as a count is."""
    assert [formatting.rate(r) for r in (0, 0.25, 12.34, 1637.4)] == [
        "0 /s",
        "0.25 /s",
        "12.3 /s",
        "1.64 k/s",
    ]


def test_an_instant_is_utc_to_the_second() -> None:
    """The format is RFC 3339."""
    assert formatting.instant(1_794_874_392_999) == "2026-11-17T00:13:12Z"


@given(st.floats(min_value=0.01, max_value=999.4))
def test_three_digits_lose_less_than_one_percent(number: float) -> None:
    """The text is within rounding of the number."""
    assert abs(float(formatting.significant(number)) - number) <= max(0.005, number * 0.00501)


def test_control_characters_are_shown() -> None:
    """Terminal escapes, 8-bit ones and changes of the direction of writing act on nothing."""
    text = "a\x1b[31mb\x9bc\u202ed\x7f\n\tü\u00a0–"
    assert formatting.visible(text) == r"a\u001b[31mb\u009bc\u202ed\u007f" + "\n\tü\u00a0–"


@given(st.text())
def test_json_with_shown_control_characters_means_the_same(text: str) -> None:
    """Programs read the output of --json."""
    assert json.loads(formatting.visible(json.dumps(text, ensure_ascii=False))) == text
