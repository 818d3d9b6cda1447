"""Raw fields become drafts, and every wrong field is named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from poller import errors
from poller.domain.inventory import draft
from poller.domain.scheduling.interval import Policy
from poller.domain.scheduling.schedule import Defaults, Schedule


def anything(collector: str, options: Mapping[str, Any]) -> Mapping[str, Any]:
    return options


def refusing(collector: str, options: Mapping[str, Any]) -> Mapping[str, Any]:
    raise errors.InvalidInput(f'collector {collector}: unknown option "prt"')


def test_absent_and_none_mean_not_given_and_empty_means_none() -> None:
    """The difference between keeping and clearing."""
    found, problems = draft.device({"name": "sw1", "site": "", "credential": None, "tags": []})
    assert problems == []
    assert (found.site, found.credential, found.tags, found.address) == ("", None, (), None)


def test_the_port_of_an_address_is_kept_apart() -> None:
    """The stored address has no port: one target gets it."""
    device, problems = draft.device({"name": "sw1", "address": "[2001:db8::1]:1161"})
    assert (device.address, device.port, problems) == ("2001:db8::1", 1161, [])


def test_every_wrong_field_is_reported_at_once() -> None:
    """One import shows all that has to be corrected."""
    _, problems = draft.device(
        {
            "name": "a b",
            "address": "10.0.0.300",
            "tags": "x",
            "enabled": "maybe",
            "colector": 1,
            "requires": 5,
        }
    )
    assert [problem.field for problem in problems] == [
        "name",
        "address",
        "tags",
        "enabled",
        "colector",
        "requires",
    ]


def test_a_device_needs_a_name() -> None:
    """A missing or invalid name is one problem."""
    assert [p.field for p in draft.device({})[1]] == ["name"]
    assert [p.field for p in draft.device({"name": ""})[1]] == ["name"]


def test_a_target_is_called_like_its_collector_unless_named() -> None:
    """The usual case needs no name."""
    assert draft.target({"collector": "snmp"}, anything)[0].name == "snmp"
    assert draft.target({"collector": "snmp", "name": "fast"}, anything)[0].name == "fast"


def test_the_collector_checks_its_options() -> None:
    """The collector's message reaches the operator."""
    _, problems = draft.target({"collector": "snmp", "options": {"prt": 1}}, refusing)
    assert problems == [draft.Problem("options", 'collector snmp: unknown option "prt"')]


def test_an_unknown_collector_is_a_problem_of_the_collector() -> None:
    """The problem names the field collector, not options."""

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


def test_the_hint_for_an_unknown_field_lists_the_fields() -> None:
    """Targets are a field of a device in a file; the nearest name comes first."""
    [problem] = draft.device({"name": "a", "target": []})[1]
    assert problem.hint == (
        "did you mean targets? it takes name, address, site, credential, tags, requires,"
        " enabled, parent, targets"
    )
    [problem] = draft.target({"intervall": "5m"}, anything)[1]
    assert problem.hint.startswith("did you mean interval? it takes name, collector, ")
    assert "targets" not in problem.hint


def test_the_fields_of_an_adaptive_target() -> None:
    """The fields are checked alone and together."""
    fields = {
        "collector": "snmp",
        "policy": "adaptive",
        "interval": "10s",
        "min": 5,
        "max": "5m",
        "staleness": "age",
    }
    found, problems = draft.target(fields, anything)
    assert problems == []
    assert found.schedule == Schedule(Policy.ADAPTIVE, 10_000, None, 5_000, 300_000, "age")
    wrong = {"policy": "adaptiv", "min": "10ms", "max": "5 min", "staleness": "a b"}
    assert [p.field for p in draft.target(wrong, anything)[1]] == [
        "policy",
        "min",
        "max",
        "staleness",
    ]
    assert [p.field for p in draft.target({"policy": "fixed", "min": "5s"}, anything)[1]] == ["min"]
    assert [p.field for p in draft.target({"min": "5m", "max": "5s"}, anything)[1]] == ["min"]


def test_the_staleness_source_is_checked_by_the_callable() -> None:
    """The check is part of saving the target, not of polling it."""

    def unknown(name: str) -> str:
        raise errors.InvalidInput(f'unknown staleness source "{name}"', hint="installed: age")

    _, problems = draft.target({"staleness": "aeg"}, anything, unknown)
    assert problems == [
        draft.Problem("staleness", 'unknown staleness source "aeg"', "installed: age")
    ]


def test_a_draft_carries_the_defaults_of_its_collector() -> None:
    """The database applies them when the target is new."""
    declared = Defaults(Schedule(Policy.ADAPTIVE, 30_000))
    known = {"snmp": declared, None: Defaults()}
    assert (
        draft.target({"collector": "snmp"}, anything, defaults_of=known.__getitem__)[0].defaults
        is declared
    )
    assert (
        draft.target({"name": "x"}, anything, defaults_of=known.__getitem__)[0].defaults
        is known[None]
    )


@pytest.mark.parametrize(
    ("raw", "expected"), [(True, True), ("false", False), ("YES", True), (0, False), ("1", True)]
)
def test_flags_in_all_spellings(raw: object, expected: bool) -> None:
    """CSV has only texts."""
    assert draft.device({"name": "a", "enabled": raw})[0].enabled is expected


def test_the_first_problem_is_raised_for_single_commands() -> None:
    """The error has the hint of the problem."""
    with pytest.raises(errors.InvalidInput, match="bad") as caught:
        draft.raise_first([draft.Problem("x", "bad", "do better"), draft.Problem("y", "worse")])
    assert caught.value.hint == "do better"
    draft.raise_first([])
