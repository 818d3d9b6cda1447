"""What the functions of a job return: usable values are taken, rubbish is refused with words."""

from __future__ import annotations

from collections import OrderedDict
from datetime import UTC, datetime, timedelta, timezone
from types import MappingProxyType
from typing import Any

import pytest

from poller.jobs import plugin_values
from poller.jobs.api import Result, Scope
from poller.jobs.plugin_values import Refused

NOON = datetime(2026, 7, 15, 12, tzinfo=UTC)
NOON_MS = 1_784_116_800_000


def test_scopes_are_pairs_each_once_and_in_order() -> None:
    """Tuples, lists, Scopes, a generator."""
    found = (each for each in [("site", "fra"), ["site", "ams"], Scope("site", "fra"), Scope()])
    assert plugin_values.scopes(found) == [("site", "fra"), ("site", "ams"), Scope()]
    assert plugin_values.scopes(set()) == []


@pytest.mark.parametrize(
    ("found", "fault"),
    [
        (None, "it returned NoneType and must list pairs"),
        ("site", "it returned str"),
        (b"site", "it returned bytes"),
        (5, "it returned int"),
        (["site"], "it lists 'site', which is no pair"),
        ([("site",)], "which is no pair"),
        ([("site", "ams", "1")], "which is no pair"),
        ([("site", 5)], "which is no pair"),
        ([("", "ams")], "a part has 1 to 50 characters"),
        ([("k" * 51, "ams")], "a part has 1 to 50 characters"),
        ([("site", "i" * 201)], "a part has 1 to 200 characters"),
        ([("site", "a\nb")], "characters that are not text"),
        ((("n", str(number)) for number in range(50_001)), "more than 50,000 scopes"),
    ],
)
def test_other_scopes_are_refused(found: Any, fault: str) -> None:
    """An endless list ends at the limit."""
    with pytest.raises(Refused, match=fault):
        plugin_values.scopes(found)


def test_plans_keep_the_order_of_the_hook() -> None:
    """Any time zone is UTC in the ledger, in whole milliseconds."""
    elsewhere = (NOON + timedelta(hours=1, microseconds=999)).astimezone(
        timezone(timedelta(hours=5, minutes=45))
    )
    assert plugin_values.plans_ms(iter([elsewhere, NOON])) == [NOON_MS + 3_600_000, NOON_MS]


@pytest.mark.parametrize(
    ("found", "fault"),
    [
        (None, "it returned NoneType and must list datetimes"),
        ("2026", "it returned str"),
        (NOON, "it returned datetime"),
        ([NOON_MS], "which is no datetime with a time zone"),
        ([NOON.replace(tzinfo=None)], "which is no datetime with a time zone"),
    ],
)
def test_other_plans_are_refused(found: Any, fault: str) -> None:
    """A time without a zone could be any instant."""
    with pytest.raises(Refused, match=fault):
        plugin_values.plans_ms(found)


@pytest.mark.parametrize(
    ("value", "result"),
    [
        (None, Result()),
        ({}, Result()),
        (OrderedDict(a=1), Result(0, {"a": 1})),
        (MappingProxyType({"a": 1}), Result(0, {"a": 1})),
        (Result(3, {"a": 1}), Result(3, {"a": 1})),
    ],
)
def test_results_of_a_handler(value: Any, result: Result) -> None:
    """None and a mapping are short forms."""
    assert plugin_values.result(value) == result


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        (5, "it returned int"),
        ([], "it returned list"),
        (True, "it returned bool"),
        (Result(-1), "rows_affected is -1"),
        (Result(True), "rows_affected is True"),
        (Result(1.5), "rows_affected is 1.5"),  # type: ignore[arg-type]
        (Result(2**63), "rows_affected is 9223372036854775808"),
        (Result(1, None), "details is NoneType and must be a mapping"),  # type: ignore[arg-type]
        (Result(1, [1]), "details is list and must be a mapping"),  # type: ignore[arg-type]
    ],
)
def test_other_results_are_refused(value: Any, fault: str) -> None:
    """The row is FAILED with these words."""
    with pytest.raises(Refused, match=fault):
        plugin_values.result(value)
