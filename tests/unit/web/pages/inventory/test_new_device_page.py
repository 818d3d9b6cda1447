"""The page of a new device: what answered, and what test polls read."""

from __future__ import annotations

import math

from poller.domain.failures.outcome import Result
from poller.domain.metrics.reading import Reading, ReadingSet
from poller.domain.scrapes.scrape_poll import ScrapeResult
from poller.service.discovery.address_discovery import AddressResult, Discovery, Suggested
from poller.service.discovery.unsaved_devices import Trial, TrialPoll
from poller.service.inventory.new_sites import NewSite
from poller.web.pages.inventory import new_device_form, new_device_page
from poller.web.pages.inventory.device_form import Choices
from poller.web.pages.inventory.new_device_form import NewDeviceForm
from poller.web.pages.inventory.new_device_page import NewDeviceView, Offered, Steps

FORM = NewDeviceForm(dict.fromkeys(new_device_form.DEVICE, "") | {"address": "192.0.2.1"})
OFFERED = Offered(Choices(["lab", "old"], ["west"]), ["ping", "snmp"], {}, "ping", {})
SILENT = Discovery("snmp", (), "no answer", True, "timeout", ["lab"])


def view(steps: Steps) -> NewDeviceView:
    return new_device_page.build_view(FORM, OFFERED, steps)


def test_a_credential_that_got_no_answer_is_named_with_what_to_do() -> None:
    """A wrong community is answered by silence, and the page says so."""
    shown = view(Steps(found=AddressResult("192.0.2.1", [SILENT])))
    assert shown.found_text == "Nothing answers at 192.0.2.1."
    assert [(each.tried, each.reason) for each in shown.silent] == [("lab", "no answer")]
    assert "a wrong community is answered by silence" in shown.hints[0]


def test_what_was_not_asked_with_a_credential_gives_no_advice_beside_a_suggestion() -> None:
    """A switch without a web server is no fault."""
    http = Discovery("http", (), "refused", True, "unreachable")
    ping = Discovery("ping", [Suggested("ping", {}, "it answers")])
    shown = view(Steps(found=AddressResult("192.0.2.1", [http, ping])))
    assert shown.found_text == "1 target suggested at 192.0.2.1."
    assert shown.hints == []


def test_a_test_poll_shows_its_first_values() -> None:
    """How many, how long, and the rest as a number."""
    many = ReadingSet.of([Reading(f"m{n}", n, {"ifName": "eth0"}) for n in range(12)])
    result = ScrapeResult(Result.OK, duration_ms=45, readings=many)
    [line] = view(Steps(trial=Trial([TrialPoll("snmp", "snmp", result)]))).trials
    assert (line.word, line.text, line.more) == ("● ok", "12 values in 45 ms", 4)
    assert (line.values[1].metric, line.values[1].labels, line.values[1].value) == (
        "m1",
        "ifName=eth0",
        "1",
    )


def test_values_that_are_no_numbers_are_shown_as_they_are() -> None:
    """A collector may read infinity."""
    odd = ReadingSet.of([Reading("a", math.inf), Reading("b", math.nan)])
    result = ScrapeResult(Result.OK, readings=odd)
    [line] = view(Steps(trial=Trial([TrialPoll("x", "x", result)]))).trials
    assert [each.value for each in line.values] == ["inf", "nan"]


def test_a_failed_test_poll_has_its_error_and_its_hint() -> None:
    """One that nobody polled has the reason."""
    polls = [
        TrialPoll("snmp", "snmp", ScrapeResult(Result.FAILED, "auth_failed", "wrong digest")),
        TrialPoll("olt", "olt", problem="no running worker has the collector olt"),
    ]
    failed, nobody = view(Steps(trial=Trial(polls))).trials
    assert (failed.tone, failed.text) == ("failing", "auth_failed: wrong digest")
    assert "poller credential rotate" in failed.hint
    assert (nobody.word, nobody.text) == (
        "○ not polled",
        "no running worker has the collector olt",
    )


def test_a_new_site_is_said_before_it_is_made() -> None:
    """A typing error is found before the device is added."""
    trial = Trial([], ["port 1161 is the option port of target snmp"], [NewSite("wset", "west")])
    assert view(Steps(trial=trial)).notes == [
        "port 1161 is the option port of target snmp",
        "makes the new site wset; did you mean west?",
    ]
