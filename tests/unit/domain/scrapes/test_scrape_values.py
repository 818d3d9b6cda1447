"""Polls of scrapes as texts, failed tables, allowed addresses, metrics of blackbox_exporter."""

from __future__ import annotations

import math

import pytest

from poller.domain.failures.outcome import Result
from poller.domain.metrics.reading import Reading, ReadingSet
from poller.domain.scrapes import allowed_addresses, blackbox_metrics, failed_parts
from poller.domain.scrapes.scrape_poll import FoundTarget, ScrapePoll, ScrapeResult


def test_a_poll_survives_its_message() -> None:
    """The name is that of the content, so that all who ask for the same poll share it."""
    wanted = ScrapePoll("snmp", "192.0.2.1", {"port": 161}, 7, requires={"site": "ams"})
    again = ScrapePoll.from_json(wanted.to_json())
    assert again == wanted
    assert again.name == wanted.name
    assert wanted.queue == "scrape;site=ams"
    assert ScrapePoll("snmp", "192.0.2.1", {"port": 162}, 7).name != wanted.name


def test_a_result_survives_redis() -> None:
    """Shapes and numbers are packed."""
    readings = ReadingSet.of([Reading("a", 1.5, {"x": "é\n"}), Reading("b", math.inf)])
    found = ScrapeResult(
        Result.PARTIAL, "timeout", "m", [("if_mib 1.3", "late")], 5, 1, 20, readings
    )
    again = ScrapeResult.from_text(found.to_text())
    assert list(again.readings or ()) == list(readings)
    assert again.failed == [("if_mib 1.3", "late")]
    assert (again.result, again.code, again.sent, again.retried) == (
        Result.PARTIAL,
        "timeout",
        5,
        1,
    )


def test_a_discovery_survives_its_way() -> None:
    """A plain poll has the text that workers of an earlier release read."""
    plain = ScrapePoll("snmp", "192.0.2.1", {"port": 161}, 7)
    asked = ScrapePoll("snmp", "192.0.2.1", {"port": 161}, 7, discovers=True)
    assert ScrapePoll.from_json(asked.to_json()) == asked
    assert "discovers" not in plain.to_json()
    assert plain.name != asked.name
    targets = [FoundTarget({"port": 161}, "a switch", "sw1", {"sysName": "sw1"})]
    text = ScrapeResult(Result.OK, found=targets).to_text()
    assert ScrapeResult.from_text(text).found == targets
    assert ScrapeResult.from_text(ScrapeResult(Result.OK).to_text()).found == []


def test_a_scrape_with_more_time_is_told_from_one_that_had_enough() -> None:
    """Only a poll that read nothing for lack of time says little about the device."""
    late = ScrapeResult(Result.FAILED, "timeout", limit_ms=800)
    assert late.was_cut_before(9_500)
    assert not late.was_cut_before(900)
    assert not ScrapeResult(Result.FAILED, "auth_failed", limit_ms=800).was_cut_before(9_500)
    readings = ReadingSet.of([Reading("a", 1.0)])
    partial = ScrapeResult(Result.PARTIAL, "timeout", readings=readings, limit_ms=800)
    assert not partial.was_cut_before(9_500)


@pytest.mark.parametrize(
    ("message", "parts"),
    [
        ("if_mib 1.3.6.1.2.1.2: no answer (1.5 s)", [("if_mib", "1.3.6.1.2.1.2")]),
        (
            "a scalars, b 1.3.6: late; b filter 1.3.7: late",
            [("a", "scalars"), ("b", "1.3.6"), ("b", "filter 1.3.7")],
        ),
        ("labels: 2 rows have name and labels of another", [("", "")]),
        ("", [("", "")]),
    ],
)
def test_failed_tables_are_named(message: str, parts: list[tuple[str, str]]) -> None:
    """A failure of another form is told without a table."""
    assert failed_parts.parse(message) == parts


@pytest.mark.parametrize(
    ("address", "is_allowed"),
    [
        ("10.1.2.3", True),
        ("11.1.2.3", False),
        ("::ffff:10.1.2.3", True),
        ("::ffff:11.1.2.3", False),
        ("2001:db8::1", True),
        ("fe80::1%eth0", False),
        ("sw1.example", False),
        ("", False),
    ],
)
def test_only_addresses_of_the_networks_are_polled(address: str, is_allowed: bool) -> None:
    """A host name is resolved before, and never compared."""
    networks = ("10.0.0.0/8", "2001:db8::/32")
    assert allowed_addresses.is_allowed(address, networks) is is_allowed


def test_readings_get_the_names_of_blackbox_exporter() -> None:
    """Phases and the expiry of a certificate are translated."""
    readings = ReadingSet.of(
        [
            Reading("http_status", 200.0),
            Reading("http_phase_seconds", 0.5, {"phase": "first_byte"}),
            Reading("http_tls_expiry_seconds", 100.0),
        ]
    )
    found = blackbox_metrics.readings(readings, True, 0.7, 5_000)
    assert {(each.name, *each.labels.values()): each.value for each in found} == {
        ("probe_success",): 1.0,
        ("probe_duration_seconds",): 0.7,
        ("probe_http_status_code",): 200.0,
        ("probe_http_duration_seconds", "processing"): 0.5,
        ("probe_http_ssl",): 1.0,
        ("probe_ssl_earliest_cert_expiry",): 105,
    }
    assert {each.name for each in found} <= blackbox_metrics.HELP.keys()
