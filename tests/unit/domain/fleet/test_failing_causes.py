"""Failing targets grouped by code and site, and the sites they are at."""

from __future__ import annotations

from poller.domain.fleet import failing_causes
from poller.domain.fleet.failing_causes import Cause, FailingTarget, SiteSummary

FAILING = [
    FailingTarget(1, "west", "timeout"),
    FailingTarget(1, "west", "timeout"),
    FailingTarget(2, "west", "timeout"),
    FailingTarget(3, "", "auth_failed"),
    FailingTarget(3, "", "timeout"),
]


def test_causes_have_most_devices_first_and_count_a_device_once() -> None:
    """Two targets of a device are one device."""
    assert failing_causes.group(FAILING) == [
        Cause("timeout", "west", targets=3, devices=2),
        Cause("auth_failed", "", targets=1, devices=1),
        Cause("timeout", "", targets=1, devices=1),
    ]


def test_codes_are_counted_over_all_sites() -> None:
    """Most frequent first."""
    causes = failing_causes.group(FAILING)
    assert failing_causes.by_code(causes) == {"timeout": 4, "auth_failed": 1}
    assert list(failing_causes.by_code(causes)) == ["timeout", "auth_failed"]


def test_a_dark_site_comes_before_one_that_fails_more() -> None:
    """A site without trouble comes last, and one without devices is empty."""
    devices = {"east": 5, "north": 0, "south": 9, "west": 4}
    found = failing_causes.sites(devices, FAILING, {"south": 1_000})
    assert found == [
        SiteSummary("south", 9, 0, 1_000),
        SiteSummary("west", 4, 2),
        SiteSummary("east", 5),
        SiteSummary("north", 0),
    ]
    assert [site.state for site in found] == ["dark", "failing", "ok", "empty"]
