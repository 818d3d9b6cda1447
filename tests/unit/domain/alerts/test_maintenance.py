"""Maintenance holds in its windows, for what it is about, and never for ever."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from unittest.mock import Mock

import pytest

from poller import errors
from poller.domain.alerts import maintenance, maintenance_check
from poller.domain.alerts.maintenance import Covered, Maintenance, Window
from poller.domain.inventory import target_filter
from poller.domain.inventory.filter_match import DeviceFacts

HOUR = 3_600_000


def ms(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


NOON = ms("2026-11-18T12:00")
SWITCH = DeviceFacts("sw1", "192.0.2.1", "fra", ("core",))
ONCE = Maintenance(
    id=1, filter="site:fra", reason="new rack", starts_ms=NOON, ends_ms=NOON + 2 * HOUR
)
WEEKLY = Maintenance(
    id=2,
    filter="site:fra",
    reason="patch day",
    starts_ms=NOON,
    ends_ms=ms("2027-06-01T00:00"),
    cron="0 2 * * sun",
    time_zone="Europe/Berlin",
    length_ms=2 * HOUR,
)


def test_a_maintenance_holds_from_its_start_until_its_end() -> None:
    """The start belongs to the window, the end does not."""
    assert ONCE.window(NOON - 1) is None
    assert ONCE.window(NOON) == Window(NOON, NOON + 2 * HOUR)
    assert ONCE.window(NOON + 2 * HOUR) is None


def test_a_recurring_one_follows_the_clock_on_the_wall() -> None:
    """Two o'clock of Berlin is another instant of UTC in winter than in summer."""
    winter = ms("2026-11-22T01:00")
    summer = ms("2027-04-04T00:00")
    assert WEEKLY.window(winter - 1) is None
    assert WEEKLY.window(winter) == Window(winter, winter + 2 * HOUR)
    assert WEEKLY.window(winter + 2 * HOUR - 1) is not None
    assert WEEKLY.window(winter + 2 * HOUR) is None
    assert WEEKLY.window(summer) == Window(summer, summer + 2 * HOUR)


def test_a_recurrence_ends_with_its_maintenance() -> None:
    """A window goes no further than the end, and none begins before the start or after the end."""
    sunday = ms("2026-11-22T01:00")
    short = replace(WEEKLY, ends_ms=sunday + HOUR)
    assert short.window(sunday) == Window(sunday, sunday + HOUR)
    assert short.window(sunday + HOUR) is None
    assert short.next_window(sunday) is None
    late = replace(WEEKLY, starts_ms=sunday + 1)
    assert late.window(sunday + HOUR) is None
    assert WEEKLY.next_window(NOON) == Window(sunday, sunday + 2 * HOUR)


@pytest.mark.parametrize(
    ("changes", "facts", "rule", "identity", "is_covered"),
    [
        ({}, SWITCH, "any", "x", True),
        ({}, replace(SWITCH, site="ber"), "any", "x", False),
        ({}, DeviceFacts("", site="fra"), "site-dark", "site-dark|site:fra|", True),
        ({}, None, "no-leader", "no-leader|platform|", False),
        ({"filter": "name:sw*"}, SWITCH, "any", "x", True),
        ({"filter": "", "rule": "no-leader"}, None, "no-leader", "x", True),
        ({"filter": "", "rule": "no-leader"}, None, "sink-behind", "x", False),
        ({"rule": "uplink"}, SWITCH, "uplink", "x", True),
        ({"rule": "uplink"}, SWITCH, "other", "x", False),
        ({"filter": "", "alert_identity": "r|device:1||"}, SWITCH, "r", "r|device:1||", True),
        ({"filter": "", "alert_identity": "r|device:1||"}, SWITCH, "r", "r|device:2||", False),
        ({"filter": ""}, SWITCH, "any", "x", False),
    ],
)
def test_a_maintenance_is_about_what_fits_all_that_it_names(
    changes: dict[str, Any], facts: DeviceFacts | None, rule: str, identity: str, is_covered: bool
) -> None:
    """Filter, rule and alert must all fit; one that names nothing covers nothing."""
    assert replace(ONCE, **changes).covers(facts, rule, identity) is is_covered


def test_the_one_that_ends_last_is_named() -> None:
    """The reason of a suppressed alert does not depend on the order of the rows."""
    longer = replace(ONCE, id=7, ends_ms=NOON + 3 * HOUR)
    alert = Covered("x", "any", SWITCH)
    for rows in ([ONCE, longer], [longer, ONCE]):
        found = maintenance.active(rows, [alert], NOON)
        assert found == {"x": longer}
        assert found["x"].name == "maintenance:7"
    assert maintenance.active([ONCE], [alert], NOON - 1) == {}


def test_the_filters_of_many_maintenances_are_read_once_a_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not once for each alert, however many filters there are."""
    parse = Mock(wraps=target_filter.parse)
    monkeypatch.setattr(target_filter, "parse", parse)
    rows = [replace(ONCE, id=number, filter=f"name:many{number}-*") for number in range(1, 401)]
    alerts = [Covered(f"a{number}", "any", SWITCH) for number in range(10)]
    assert maintenance.active(rows, alerts, NOON) == {}
    assert parse.call_count == len(rows)


def test_the_next_change_is_the_first_begin_or_end() -> None:
    """A keeper sleeps until then."""
    sunday = ms("2026-11-22T01:00")
    assert maintenance.next_change_ms([ONCE, WEEKLY], NOON - 1) == NOON
    assert maintenance.next_change_ms([ONCE, WEEKLY], NOON) == NOON + 2 * HOUR
    assert maintenance.next_change_ms([ONCE, WEEKLY], NOON + 2 * HOUR) == sunday
    assert maintenance.next_change_ms([], NOON) is None


@pytest.mark.parametrize(
    ("draft", "field"),
    [
        (replace(ONCE, filter=""), "where"),
        (replace(ONCE, filter="state:failing"), ""),
        (replace(ONCE, reason="  "), "reason"),
        (replace(ONCE, reason="x" * 1_001), "reason"),
        (replace(ONCE, ends_ms=NOON), "end"),
        (replace(ONCE, starts_ms=NOON + 3 * HOUR), "end"),
        (replace(ONCE, starts_ms=NOON - HOUR), "start"),
        (replace(ONCE, ends_ms=NOON + 367 * 24 * HOUR), "end"),
        (replace(ONCE, length_ms=HOUR), "length"),
        (replace(WEEKLY, cron="0 2 * *"), "cron"),
        (replace(WEEKLY, time_zone="Mars/Base"), "cron"),
        (replace(WEEKLY, length_ms=0), "length"),
        (replace(WEEKLY, length_ms=7 * 24 * HOUR), "length"),
        (replace(WEEKLY, ends_ms=NOON + HOUR), "cron"),
        (replace(WEEKLY, ends_ms=NOON + 6 * 366 * 24 * HOUR), "end"),
    ],
)
def test_what_would_never_hold_or_for_ever_is_refused(draft: Maintenance, field: str) -> None:
    """Each refusal names the field, and says what to do."""
    with pytest.raises(errors.InvalidInput) as refused:
        maintenance_check.check(draft, NOON)
    assert refused.value.field == field
    assert refused.value.hint


@pytest.mark.parametrize("draft", [ONCE, WEEKLY, replace(ONCE, filter="", rule="uplink")])
def test_a_sound_maintenance_passes(draft: Maintenance) -> None:
    """Once, recurring, and for a rule alone."""
    maintenance_check.check(draft, NOON)
