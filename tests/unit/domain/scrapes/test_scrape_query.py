"""Parameters of `/snmp`, with the texts of snmp_exporter."""

from __future__ import annotations

import pytest

from poller import errors
from poller.domain.scrapes import scrape_query
from poller.domain.scrapes.scrape_query import SnmpQuery


def test_modules_come_by_comma_and_repeated_each_once() -> None:
    """The order is that of the address."""
    pairs = [("target", "a"), ("module", "x,y,"), ("module", "y"), ("module", "z"), ("other", "1")]
    assert scrape_query.parse_snmp(pairs) == SnmpQuery("a", ("x", "y", "z"))


def test_auth_and_context_are_taken() -> None:
    """Without modules the device chooses them."""
    pairs = [("target", "a"), ("auth", "lab"), ("snmp_context", "bridge1"), ("snmp_engineid", "")]
    assert scrape_query.parse_snmp(pairs) == SnmpQuery("a", (), "lab", "bridge1")


@pytest.mark.parametrize(
    ("pairs", "text"),
    [
        ([], "'target' parameter must be specified once"),
        ([("target", "")], "'target' parameter must be specified once"),
        ([("target", "a"), ("target", "b")], "'target' parameter must be specified once"),
        (
            [("target", "a"), ("auth", "x"), ("auth", "y")],
            "'auth' parameter must only be specified once",
        ),
        (
            [("target", "a"), ("snmp_context", "x"), ("snmp_context", "y")],
            "'snmp_context' parameter must only be specified once",
        ),
        (
            [("target", "a"), ("snmp_engineid", "x"), ("snmp_engineid", "y")],
            "'snmp_engineid' parameter must only be specified once",
        ),
        (
            [("target", "a"), ("module", ",")],
            "'module' parameter must contain at least one module name",
        ),
        ([("target", "a"), ("snmp_engineid", "8000")], "'snmp_engineid' parameter is not suppor"),
        ([("target", "a\n")], "'target' parameter has an unprintable character"),
        ([("target", "a"), ("module", "m" * 301)], "'module' parameter is too long"),
    ],
)
def test_a_wrong_parameter_is_refused_in_the_exporters_words(
    pairs: list[tuple[str, str]], text: str
) -> None:
    """An engine id is refused, never ignored."""
    with pytest.raises(errors.InvalidInput, match=text):
        scrape_query.parse_snmp(pairs)


@pytest.mark.parametrize(
    ("header", "seconds"), [("", 20.0), ("10", 9.5), ("1", 0.9), ("0.5", 0.45), ("9999", 119.5)]
)
def test_the_time_of_prometheus_is_kept_with_a_margin(header: str, seconds: float) -> None:
    """The margin of a short time is a tenth of it."""
    assert scrape_query.timeout_s(header) == pytest.approx(seconds)


@pytest.mark.parametrize("header", ["soon", "0", "-1", "nan"])
def test_a_time_that_is_none_is_refused(header: str) -> None:
    """A wrong header would otherwise wait for ever, or not at all."""
    with pytest.raises(errors.InvalidInput):
        scrape_query.timeout_s(header)
