"""The form of a target: fields from the options that a collector declares, and what it changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import web_rates

from poller.collectors import descriptions
from poller.collectors.http.collector import HttpCollector
from poller.domain.scheduling.interval import Policy
from poller.web.pages.device import target_form

STORED: dict[str, Any] = {"url": "https://192.0.2.1/?key=***", "values": {"load": "a.b"}}
TARGET = replace(web_rates.TARGET, collector="http", options=STORED)
FORM = target_form.build(TARGET, list(descriptions.options(HttpCollector())))


def fields() -> dict[str, target_form.FormField]:
    return {each.name: each for each in FORM.fields}


def test_a_field_for_every_option_that_the_collector_declares() -> None:
    """Choices are a list, structures are JSON, and the help has type and default."""
    names = {each["name"] for each in descriptions.options(HttpCollector())}
    assert names == {each.label for each in FORM.options}
    assert fields()["option.values"].text == '{"load": "a.b"}'
    assert fields()["option.method"].choices[0] == ""
    assert "GET" in fields()["option.method"].choices
    assert fields()["interval"].text == "1m"


def test_only_changed_texts_are_changes() -> None:
    """A masked secret that was not touched stays as it is stored."""
    sent = {each.name: each.text for each in FORM.fields}
    assert target_form.changes(FORM, sent).is_empty
    changed = target_form.changes(FORM, {**sent, "interval": "5m", "option.values": ""})
    assert changed.fields == {"interval": "5m"}
    assert changed.options == {"values": None}


def test_a_switch_is_a_flag() -> None:
    """The service takes true and false."""
    assert target_form.changes(FORM, {"enabled": "false"}).fields == {"enabled": False}


def test_the_command_makes_the_same_changes() -> None:
    """It can be pasted as it is."""
    changed = target_form.Changes({"interval": "5m", "enabled": False}, {"headers": '{"a": "b c"}'})
    assert target_form.command(FORM, changed) == (
        """poller target edit sw1/snmp --interval 5m --disable -o 'headers={"a": "b c"}'"""
    )


def test_a_refused_form_keeps_what_was_typed_beside_its_error() -> None:
    """Nobody types twice."""
    sent = {"interval": "5 parsecs", "option.timeout": "x"}
    wrong = target_form.refused(FORM, sent, '"5 parsecs" is not a duration', "try 5m", "interval")
    found = {each.name: each for each in wrong.fields}
    assert found["interval"].text == "5 parsecs"
    assert found["interval"].error == '"5 parsecs" is not a duration'
    assert not found["timeout"].error
    assert (wrong.error, wrong.hint) == ('"5 parsecs" is not a duration', "try 5m")


def test_an_adaptive_target_has_limits() -> None:
    """A fixed one has none, and its form does not ask for them."""
    adaptive = replace(TARGET, policy=Policy.ADAPTIVE, min_ms=5_000, max_ms=300_000)
    names = [each.name for each in target_form.build(adaptive, []).schedule]
    assert {"min", "max"} <= set(names)
    assert "min" not in fields()
