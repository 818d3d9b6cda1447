"""What looks wrong in a rule: names that no stored poll has."""

from __future__ import annotations

from typing import Any

import pytest

from poller.domain.alerts import rule_form
from poller.domain.alerts.rules import rule_warnings
from poller.domain.metrics.reading import ReadingSet, SeriesSet
from tests.unit.domain.alerts.watched_polls import readings

SHAPES = [
    readings({"ifHCInOctets": [1.0, 2.0], "ifOperStatus": [1.0, 1.0], "temperature": 20.0}).series,
    ReadingSet.of([]).series,
]
THRESHOLD: dict[str, Any] = {"is": "threshold", "metric": "temperature", "above": 60}


def warned(when: dict[str, Any], text: str = "", shapes: list[SeriesSet] = SHAPES) -> list[str]:
    rule = rule_form.parse({"name": "x", "when": when, "text": text})
    return rule_warnings.warnings(rule, rule_warnings.known_series(shapes))


@pytest.mark.parametrize(
    ("change", "warning"),
    [
        ({}, ""),
        ({"metric": "temprature"}, "no stored poll has temprature; did you mean temperature?"),
        ({"metric": "zzz"}, "there are ifHCInOctets, ifOperStatus, temperature"),
        ({"measure": "rate"}, "temperature is no counter and has no rate; write value"),
        ({"metric": "ifHCInOctets"}, "a counter that only grows; write measure: rate"),
        ({"metric": "ifHCInOctets", "measure": "rate"}, ""),
        ({"metric": "ifHCInOctets", "measure": "percent_of_speed"}, "no stored poll has a speed"),
        (
            {"metric": "ifHCInOctets", "measure": "rate", "labels": {"ifNmae": "x"}},
            "series of ifHCInOctets have no label ifNmae; there are ifAlias, ifIndex, ifName",
        ),
        ({"labels": {"ifName": "x"}}, "series of temperature have no label ifName; there are none"),
    ],
)
def test_a_name_that_no_poll_has_is_a_warning(change: dict[str, Any], warning: str) -> None:
    """The warning names the field and says what exists."""
    found = warned({**THRESHOLD, **change})
    assert len(found) == bool(warning)
    assert warning in "".join(found)


def test_a_label_of_a_text_is_looked_for_too() -> None:
    """A text with a label that is always empty helps nobody."""
    [warning] = warned(THRESHOLD, "{label:ifAlias}")
    assert warning == "text: series of temperature have no label ifAlias; there are none"


def test_a_rule_of_interfaces_needs_their_state() -> None:
    """Its labels are those of the state of interfaces."""
    assert warned({"is": "interface_down", "labels": {"ifAlias": "x"}}) == []
    [label] = warned({"is": "interface_down", "labels": {"port": "x"}})
    assert "interfaces have no label port" in label
    [state] = warned({"is": "interface_down"}, shapes=SHAPES[1:])
    assert "no stored poll has the state of an interface" in state


def test_nothing_is_known_before_the_first_poll() -> None:
    """A new platform cannot tell a wrong name from one that is not polled yet."""
    [warning] = warned(THRESHOLD, shapes=[])
    assert "no poll is stored yet" in warning
    assert warned({"is": "device_unreachable"}, shapes=[]) == []
