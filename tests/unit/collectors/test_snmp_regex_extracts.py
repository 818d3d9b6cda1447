"""Extracts use RE2 expressions and Go's rules for templates and floats."""

from __future__ import annotations

import math

import pytest

from poller.collectors.snmp.metrics import regex_extracts


@pytest.mark.parametrize(
    ("text", "pattern", "template", "number"),
    [
        ("21.5 C", r"([0-9.]+) C", "$1", 21.5),
        ("is 21.5 C", r"([0-9.]+) C", "$1", None),
        ("a\n21", r"(?s).*?([0-9]+)", "$1", 21),
        ("a\n21", r".*?([0-9]+)", "$1", None),
        ("21\n", r"([0-9]+)", "$1", None),
        ("up 3d", r"up (?P<days>\d+)d", "${days}", 3),
        ("up 3d", r"up (\d+)d", "$1d", None),
        ("up 3d", r"up (\d+)d", "${1}0", 30),
        ("up 3d", r"up (\d+)d", "$1.5", 3.5),
        ("up 3d", r"up (\d+)d", "$2", None),
        ("up 3d", r"up (\d+)d", "$01", None),
        ("up 3d", r"up (\d+)d", "7", 7),
        ("up", r"up(\d+)?", "1$1", 1),
        ("x", r"(a)|x", "$0", None),
        ("12", r".*", "$0", 12),
        ("12", r".*", "$", None),
        ("5", r"(.)", "$$1", None),
        ("nan", r"(.*)", "$1", math.nan),
        ("-Inf", r"(.*)", "$1", -math.inf),
        ("1_000.2_5", r"(.*)", "$1", 1000.25),
        ("_1", r"(.*)", "$1", None),
        ("1__0", r"(.*)", "$1", None),
        ("0x_1p1", r"(.*)", "$1", 2),
        (" 1", r"(.*)", "$1", None),
        ("0x10p1", r"(.*)", "$1", 32),
        ("0x10", r"(.*)", "$1", None),
        ("1e400", r"(.*)", "$1", None),
        ("1e3", r"(.*)", "$1", 1000),
        (".5", r"(.*)", "$1", 0.5),
        ("5.", r"(.*)", "$1", 5),
        ("٣", r"(.*)", "$1", None),
        ("ž7", r"ž(\d)", "$1", 7),
    ],
)
def test_extracts(text: str, pattern: str, template: str, number: float | None) -> None:
    """The whole text must match, `$1x` is the group "1x", and only Go floats are numbers."""
    found = regex_extracts.extract(text, regex_extracts.compile_whole(pattern), template)
    assert found == number or (
        found is not None and math.isnan(found) and number is not None and math.isnan(number)
    )


@pytest.mark.parametrize("pattern", ["(", "(?=a)", r"(a)\1", "a{1001}", "[b-a]"])
def test_expressions_that_re2_lacks_are_refused(pattern: str) -> None:
    """Go has neither look-ahead nor back-references."""
    with pytest.raises(regex_extracts.BadPattern) as raised:
        regex_extracts.compile_whole(pattern)
    assert str(raised.value)


def test_a_backtracking_expression_is_fast() -> None:
    """RE2 takes linear time in the length of the text."""
    assert (
        regex_extracts.extract("a" * 50_000 + "b", regex_extracts.compile_whole("(a*)*c"), "$1")
        is None
    )
