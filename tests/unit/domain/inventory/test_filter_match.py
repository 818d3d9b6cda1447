"""A filter in memory selects what the same filter selects in SQL."""

from __future__ import annotations

import pytest

from poller import errors
from poller.domain.inventory import target_filter
from poller.domain.inventory.filter_match import FilterMatch
from poller.domain.inventory.poll_target import PollTarget
from poller.domain.scheduling.interval import Policy

TARGET = PollTarget(
    id=1,
    version=1,
    name="snmp",
    device_id=1,
    device="sw-ams-1",
    address="10.1.0.7",
    site="ams",
    collector="snmp",
    interval_ms=60_000,
    timeout_ms=5_000,
    options={"tls": False, "version": "2c"},
    tags=("core", "edge"),
    policy=Policy.FIXED,
)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "site:ams,fra",
        "tag:core tag:edge",
        "collector:snmp",
        "name:sw-*",
        "address:10.1.0.0/16",
        "option:tls=false",
        "option:version=2c site:ams",
    ],
)
def test_a_filter_accepts_what_fits_every_key(text: str) -> None:
    """Each key, alone and with another one."""
    assert FilterMatch(target_filter.parse(text)).accepts(TARGET)


@pytest.mark.parametrize(
    "text",
    [
        "site:fra",
        "tag:core tag:dmz",
        "collector:ping",
        "name:sw",
        "address:10.2.0.0/16",
        "option:tls=true",
        "option:port=161",
        "site:ams collector:ping",
    ],
)
def test_a_filter_refuses_what_does_not_fit_one_key(text: str) -> None:
    """One key that does not fit is enough."""
    assert not FilterMatch(target_filter.parse(text)).accepts(TARGET)


@pytest.mark.parametrize("text", ["state:failing", "code:timeout", "credential:lab"])
def test_a_filter_of_a_state_is_refused(text: str) -> None:
    """A rule or a maintenance is about what will be, not about the last poll."""
    with pytest.raises(errors.InvalidInput):
        FilterMatch(target_filter.parse(text))
