"""Staleness sources are loaded by entry point; a broken one is named and affects no other."""

from __future__ import annotations

import math
from typing import Any

import pytest

from poller import errors
from poller.collectors import staleness_registry
from poller.domain.scheduling import staleness as built_in
from poller.domain.scheduling.interval import Adaptive
from poller.domain.scheduling.staleness import Evidence

EVIDENCE = Evidence(Adaptive(), 1_000, 1_000)


class Point:
    """An entry point that is not installed."""

    dist = None
    group = staleness_registry.GROUP

    def __init__(self, name: str, thing: Any) -> None:
        self.name, self._thing = name, thing

    def load(self) -> Any:
        if isinstance(self._thing, BaseException):
            raise self._thing
        return self._thing


def load(**things: Any) -> staleness_registry.Sources:
    return staleness_registry.load([Point(name, thing) for name, thing in things.items()])  # type: ignore[misc]


def test_the_built_in_ones_come_in_by_entry_point() -> None:
    """Built-ins are loaded like plugins."""
    found = staleness_registry.load()
    assert {"steady", "age", "change"} <= set(found.functions)
    assert found.functions["steady"] is built_in.steady
    assert (found.compares("change"), found.compares("steady")) == (True, False)


def test_a_source_of_a_plugin_gives_scores() -> None:
    """Any function of the evidence."""
    found = load(half=lambda evidence: 0.5)
    assert found.check("half") == "half"
    assert found.score("half", EVIDENCE) == 0.5
    assert found.broken == ()


def test_broken_ones_are_named_with_their_reason_and_the_others_work() -> None:
    """Whatever they do when they are imported."""
    found = load(
        good=lambda evidence: 1, bang=ImportError("no acme"), leaves=SystemExit(3), number=7
    )
    assert set(found.functions) == {"good"}
    assert {broken.name: broken.reason for broken in found.broken} == {
        "bang": "ImportError: no acme",
        "leaves": "SystemExit: 3",
        "number": "it is no function",
    }
    with pytest.raises(
        errors.InvalidInput, match=r'"bang" \(unknown distribution\) cannot be used'
    ) as raised:
        found.check("bang")
    assert raised.value.cause == "ImportError: no acme"


def test_a_taken_name_stays_with_the_first() -> None:
    """A plugin cannot replace what others rely on."""
    points = [Point("one", lambda evidence: 0.1), Point("one", lambda evidence: 0.9)]
    found = staleness_registry.load(points)  # type: ignore[arg-type]
    assert found.score("one", EVIDENCE) == 0.1
    assert [broken.reason for broken in found.broken] == [
        "the name is taken by unknown distribution"
    ]


def test_an_unknown_one_is_refused_with_the_nearest() -> None:
    """The hint lists all installed sources."""
    with pytest.raises(errors.InvalidInput, match='unknown staleness source "stedy"') as raised:
        load(steady=built_in.steady, age=built_in.age).check("stedy")
    assert raised.value.hint == "did you mean steady? installed: age, steady"


def test_a_source_that_fails_is_one_kind_of_error() -> None:
    """Raising, giving nothing, giving no number, not being there."""

    def bad(evidence: Evidence) -> float:
        raise KeyError("x")

    found = load(bad=bad, none=lambda evidence: None, nan=lambda evidence: math.nan)
    for name, reason in (
        ("bad", "KeyError"),
        ("none", "TypeError"),
        ("nan", "not a number"),
        ("gone", "not installed"),
    ):
        with pytest.raises(staleness_registry.BadScore, match=reason):
            found.score(name, EVIDENCE)
