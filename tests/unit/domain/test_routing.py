"""Queues and who serves them."""

from __future__ import annotations

import pytest

from poller.domain import routing


def test_a_queue_name_is_canonical() -> None:
    """The order in which tags were given does not matter, and the name can be read back."""
    name = routing.queue("snmp", {"zone": "dmz", "site": "ams"})
    assert name == routing.queue("snmp", {"site": "ams", "zone": "dmz"}) == "poll.snmp;site=ams;zone=dmz"
    assert routing.parse(name) == ("snmp", {"site": "ams", "zone": "dmz"})
    assert routing.parse(routing.queue("snmp", {})) == ("snmp", {})


@pytest.mark.parametrize(
    ("requires", "tags", "served"),
    [
        ({}, {}, True),
        ({}, {"site": "ams"}, True),
        ({"site": "ams"}, {"site": "ams", "zone": "dmz"}, True),
        ({"site": "ams"}, {}, False),
        ({"site": "ams"}, {"site": "fra"}, False),
        ({"site": "ams", "zone": "dmz"}, {"site": "ams"}, False),
    ],
)
def test_a_worker_serves_what_it_carries_every_tag_for(
    requires: dict[str, str], tags: dict[str, str], served: bool
) -> None:
    """All required tags, with the same values; more on the worker does no harm."""
    assert routing.serves(routing.queue("snmp", requires), ["snmp"], tags) is served


def test_a_worker_without_the_collector_serves_nothing_of_it() -> None:
    """Whatever its tags."""
    assert not routing.serves("poll.acme", ["snmp"], {})


def test_a_name_that_is_not_ours_is_served_by_nobody() -> None:
    """Whatever stands in Redis, reading it never fails."""
    assert not routing.serves("poll.snmp;rubbish", ["snmp"], {"site": "ams"})
    assert not routing.serves("", ["snmp"], {})


def test_the_more_specific_level_wins() -> None:
    """Site, then device, then target."""
    assert routing.merge({"a": "site", "b": "site"}, {"b": "device"}, {"c": "target"}) == {
        "a": "site", "b": "device", "c": "target",
    }  # fmt: skip
