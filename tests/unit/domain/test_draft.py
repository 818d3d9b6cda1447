"""Raw fields become drafts, and every wrong field is named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from poller import errors
from poller.domain import draft


def anything(collector: str, options: Mapping[str, Any]) -> Mapping[str, Any]:
    return options


def refusing(collector: str, options: Mapping[str, Any]) -> Mapping[str, Any]:
    raise errors.InvalidInput(f'collector {collector}: unknown option "prt"')


def test_absent_and_none_mean_not_given_and_empty_means_none() -> None:
    """The difference between keeping and clearing."""
    found, problems = draft.device({"name": "sw1", "site": "", "credential": None, "tags": []})
    assert problems == []
    assert (found.site, found.credential, found.tags, found.address) == ("", None, (), None)


def test_every_wrong_field_is_reported_at_once() -> None:
    """One import shows all that has to be corrected."""
    _, problems = draft.device(
        {"name": "a b", "address": "10.0.0.300", "tags": "x", "enabled": "maybe", "colector": 1, "requires": 5}
    )
    assert [problem.field for problem in problems] == ["name", "address", "tags", "enabled", "colector", "requires"]


def test_a_device_needs_a_name() -> None:
    """Said once, whether it is missing or bad."""
    assert [p.field for p in draft.device({})[1]] == ["name"]
    assert [p.field for p in draft.device({"name": ""})[1]] == ["name"]


def test_a_target_is_called_like_its_collector_unless_named() -> None:
    """The usual case needs no name."""
    assert draft.target({"collector": "snmp"}, anything)[0].name == "snmp"
    assert draft.target({"collector": "snmp", "name": "fast"}, anything)[0].name == "fast"


def test_options_are_judged_by_the_collector() -> None:
    """Its own words reach the operator."""
    _, problems = draft.target({"collector": "snmp", "options": {"prt": 1}}, refusing)
    assert problems == [draft.Problem("options", 'collector snmp: unknown option "prt"')]


def test_an_unknown_collector_is_a_problem_of_the_collector() -> None:
    """Not of its options."""

    def unknown(collector: str, options: Mapping[str, Any]) -> Mapping[str, Any]:
        raise draft.UnknownCollector(f'unknown collector "{collector}"', "", "installed: snmp")

    _, problems = draft.target({"collector": "smnp"}, unknown)
    assert problems == [draft.Problem("collector", 'unknown collector "smnp"', "installed: snmp")]


def test_times_are_checked_alone_and_together() -> None:
    """A bad interval does not hide a bad time-out."""
    _, problems = draft.target({"interval": "5 min", "timeout": "x"}, anything)
    assert [p.field for p in problems] == ["interval", "timeout"]
    _, problems = draft.target({"interval": "10s", "timeout": "10s"}, anything)
    assert [p.field for p in problems] == ["timeout"]


@pytest.mark.parametrize(("raw", "expected"), [(True, True), ("false", False), ("YES", True), (0, False), ("1", True)])
def test_flags_in_all_spellings(raw: object, expected: bool) -> None:
    """CSV has only texts."""
    assert draft.device({"name": "a", "enabled": raw})[0].enabled is expected


def test_the_first_problem_is_raised_for_single_commands() -> None:
    """With its hint."""
    with pytest.raises(errors.InvalidInput, match="bad") as caught:
        draft.raise_first([draft.Problem("x", "bad", "do better"), draft.Problem("y", "worse")])
    assert caught.value.hint == "do better"
    draft.raise_first([])
