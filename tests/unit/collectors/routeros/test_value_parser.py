"""RouterOS texts to numbers: every spelling of versions 6 and 7 that families declare."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poller.collectors.routeros import value_parser


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("10", 10),
        ("-3", -3),
        ("1.5", 1.5),
        ("18446744073709551615", 2**64 - 1),
        ("", None),
        ("4GiB", None),
        ("٣", None),
        ("007", 7),
        ("1e400", None),
        ("9" * 65, None),
    ],
)
def test_numbers(text: str, number: float | None) -> None:
    assert value_parser.number(text) == number


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1w2d3h4m5s", 788645),
        ("5s", 5),
        ("1h", 3600),
        ("250ms", 0.25),
        ("1s250ms", 1.25),
        ("3ms20us", 0.00302),
        ("4d05:06:07", 363967),
        ("1w4d05:06:07", 968767),
        ("05:06:07.250", 18367.25),
        ("00:00:00", 0),
        ("", None),
        ("never", None),
        ("5", None),
        ("1h junk", None),
    ],
)
def test_durations(text: str, seconds: float | None) -> None:
    got = value_parser.seconds(text)
    assert got == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize(
    ("text", "ms"), [("12ms", 12), ("1ms500us", 1.5), ("1d", 86_400_000), ("soon", None)]
)
def test_durations_in_milliseconds(text: str, ms: float | None) -> None:
    assert value_parser.milliseconds(text) == ms


@pytest.mark.parametrize(
    ("text", "truth"), [("true", 1), ("yes", 1), ("false", 0), ("no", 0), ("maybe", None)]
)
def test_truth(text: str, truth: float | None) -> None:
    assert value_parser.truth(text) == truth


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("24.1", 24.1),
        ("24.1V", 24.1),
        ("-52dBm", -52),
        ("-52@6Mbps", -52),
        ("-52dBm@HT20-3", -52),
        ("97%", 97),
        ("3 %", 3),
        ("4120RPM", 4120),
        ("120m", 120),
        ("41C", 41),
        ("", None),
        ("ok", None),
        ("12 34", None),
        ("1.2.3", None),
        ("4GiB", None),
        ("1310nm", 1310),
        ("32mA", 32),
    ],
)
def test_numbers_with_units(text: str, number: float | None) -> None:
    assert value_parser.quantity(text) == number


@pytest.mark.parametrize(
    ("text", "size", "in_kib"),
    [
        ("2048", 2048, 2048 * 1024),
        ("2048KiB", 2048 * 1024, 2048 * 1024),
        ("1.5MiB", 1572864, 1572864),
        ("1GiB", 2**30, 2**30),
        ("2kB", None, None),
        ("", None, None),
    ],
)
def test_sizes(text: str, size: float | None, in_kib: float | None) -> None:
    """Some menus write no unit and mean KiB."""
    assert (value_parser.size(text), value_parser.kibibytes(text)) == (size, in_kib)


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        ("10Mbps", 1e7),
        ("1Gbps", 1e9),
        ("2.5Gbps", 2.5e9),
        ("100Gbps", 1e11),
        ("130Mbps-20MHz/2S/SGI", 130e6),
        ("866.6Mbps-80MHz/2S/SGI", 866.6e6),
        ("512kbps", 512e3),
        ("0bps", 0),
        ("1200950000", 1200950000),
        ("", None),
        ("fast", None),
        ("auto-1Gbps", None),
    ],
)
def test_rates(text: str, bits: float | None) -> None:
    assert value_parser.bits(text) == (None if bits is None else pytest.approx(bits))


def test_rates_in_megabits() -> None:
    assert [value_parser.megabits(text) for text in ("100Mbps", "2.5Gbps", "1000000", "?")] == [
        100,
        2500,
        1,
        None,
    ]


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-01-31 23:59:59", 1769903999),
        ("jan/31/2026 23:59:59", 1769903999),
        ("1970-01-01", 0),
        ("feb/30/2026 00:00:00", None),
        ("yesterday", None),
        ("", None),
    ],
)
def test_dates_of_both_versions(text: str, instant: float | None) -> None:
    assert value_parser.instant(text) == instant


def test_lanes_of_a_switch_are_added_up() -> None:
    assert [value_parser.total(text) for text in ("5", "1,2,3", "1,x", "")] == [5, 6, None, None]


def test_one_of_several_values() -> None:
    upload, download = value_parser.part(0, "/"), value_parser.part(1, "/", value_parser.bits)
    assert (upload("12/34"), download("12/34kbps")) == (12, 34000)
    assert download("12") is None


def test_words_and_other_units() -> None:
    assert [value_parser.is_("link-ok")(text) for text in ("link-ok", "no-link")] == [1, 0]
    assert value_parser.times(1024)("2") == 2048
    assert value_parser.times(1024)("two") is None


PARSERS = (
    *(
        value_parser.number,
        value_parser.size,
        value_parser.kibibytes,
        value_parser.quantity,
        value_parser.truth,
        value_parser.total,
        value_parser.part(1, ","),
    ),
    *(
        value_parser.seconds,
        value_parser.milliseconds,
        value_parser.bits,
        value_parser.megabits,
        value_parser.instant,
    ),
)


@given(st.text() | st.from_regex(r"-?[0-9.]{0,80}[a-zA-Z@%/:, ]{0,9}[0-9]{0,9}"))
def test_any_text_is_a_finite_number_or_none(text: str) -> None:
    """A device can send anything."""
    for parse in PARSERS:
        value = parse(text)
        assert value is None or abs(float(value)) < float("inf")
