"""Filters and changes of many devices and targets, on SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller import errors
from poller.db.inventory import (
    bulk_edits,
    credential_rows,
    devices,
    filter_conditions,
    inventory_feed,
    targets,
)
from poller.db.inventory.inventory_feed import Author
from poller.domain.inventory import target_filter
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.inventory.tag_change import TagChange

SNMP = TargetDraft(collector="snmp", interval_ms=60_000, timeout_ms=5_000)
PING = TargetDraft(collector="ping", interval_ms=10_000, timeout_ms=1_000)


@pytest.fixture
def fleet(engine: Engine) -> Engine:
    """Six switches at two sites, and a router without a site."""
    for number in range(6):
        draft = DeviceDraft(
            f"sw-{number}",
            address=f"10.{number % 2}.0.{number}",
            site="ams" if number < 4 else "ber",
            tags=("core", "lab") if number % 3 == 0 else ("core",),
        )
        devices.add(engine, draft, [SNMP, PING] if number == 5 else [SNMP])
    devices.add(engine, DeviceDraft("SW-6%", address="r1.example.net", enabled=False), [PING])
    return engine


def names(engine: Engine, text: str) -> list[str]:
    return [d.name for d in filter_conditions.matching_devices(engine, target_filter.parse(text))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("site:ber", ["sw-4", "sw-5"]),
        ("site:ams,ber tag:lab", ["sw-0", "sw-3"]),
        ("site:", ["SW-6%"]),
        ("tag:core tag:lab", ["sw-0", "sw-3"]),
        ("tag:cor", []),
        ("name:sw-?", ["sw-0", "sw-1", "sw-2", "sw-3", "sw-4", "sw-5"]),
        ("name:*-6*,sw-1", ["SW-6%", "sw-1"]),
        ("name:%", []),
        ("name:*%", ["SW-6%"]),
        ("name:s_-1", []),
        ("name:[s]*", []),
        ("address:10.1.0.0/16", ["sw-1", "sw-3", "sw-5"]),
        ("address:*.example.net,10.0.0.2", ["SW-6%", "sw-2"]),
        ("site:ber address:10.0.0.0/8 name:*5", ["sw-5"]),
        ("site:nowhere", []),
    ],
)
def test_devices_by_each_key_and_by_several(fleet: Engine, text: str, expected: list[str]) -> None:
    """Every key narrows the selection; wildcards are * and ? only, and case counts."""
    assert sorted(names(fleet, text)) == expected


def test_targets_by_collector_with_the_keys_of_their_device(fleet: Engine) -> None:
    """A target is enabled only with its device."""
    wanted = target_filter.parse("collector:ping")
    found = filter_conditions.matching_targets(fleet, wanted)
    assert sorted((t.device, t.name, t.enabled) for t in found) == [
        ("SW-6%", "ping", False),
        ("sw-5", "ping", True),
    ]
    at_site = filter_conditions.matching_targets(fleet, target_filter.parse("site:ber"))
    assert [(t.device, t.name) for t in at_site] == [
        ("sw-4", "snmp"),
        ("sw-5", "ping"),
        ("sw-5", "snmp"),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("option:tls=false", ["plain"]),
        ("option:version=2c", ["text"]),
        ("option:port=1161", ["number", "text"]),
        ("option:port=1161 option:version=2c", ["text"]),
        ("option:tls=true", []),
        ("option:no'such=1", []),
    ],
)
def test_targets_by_the_options_that_they_have(
    fleet: Engine, text: str, expected: list[str]
) -> None:
    """Numbers, texts and flags are written as in -o; an option that is not given never matches."""
    options: dict[str, dict[str, object]] = {
        "plain": {"tls": False},
        "number": {"port": 1161},
        "text": {"port": 1161, "version": "2c"},
    }
    for name, given in options.items():
        targets.add(fleet, "sw-0", TargetDraft(name, "snmp", given))
    wanted = target_filter.parse(text.replace("'", "\\'"))
    found = filter_conditions.matching_targets(fleet, wanted)
    assert [target.name for target in found] == expected
    assert filter_conditions.count_enabled(fleet, wanted, 10) == len(expected)


def test_targets_by_the_credential_that_they_are_polled_with(fleet: Engine) -> None:
    """That of the device, unless a target has its own."""
    for name in ("inherited", "own", "unused"):
        credential_rows.add(fleet, name, "community", "envelope")
    devices.edit(fleet, "sw-5", DeviceDraft("sw-5", credential="inherited"))
    targets.edit(fleet, "sw-5", "ping", TargetDraft("ping", credential="own"))
    expected = {"inherited": ["snmp"], "own": ["ping"], "inherited,own": ["ping", "snmp"]}
    for names_, found in {**expected, "unused": []}.items():
        wanted = target_filter.parse(f"credential:{names_}")
        matching = filter_conditions.matching_targets(fleet, wanted)
        assert [target.name for target in matching] == found
    assert filter_conditions.unknown_credentials(fleet, ["own", "other"]) == ["other"]


def test_devices_are_changed_together_under_one_version(fleet: Engine) -> None:
    """Tags are added and removed per device; the scheduler learns of every target at once."""
    before = inventory_feed.version(fleet)
    found = filter_conditions.matching_devices(fleet, target_filter.parse("site:ams"))
    woken: list[int] = []

    tags = TagChange(add=("new",), remove=("core",))
    draft = DeviceDraft("", site="fra", enabled=False)
    count = bulk_edits.edit_devices(
        fleet, [d.id for d in found], draft, tags, author=Author(notify=woken.append)
    )
    assert (count, woken) == (4, [before + 1])
    moved = {d.name: d for d in devices.listing(fleet) if d.site == "fra"}
    assert sorted(moved) == ["sw-0", "sw-1", "sw-2", "sw-3"]
    assert (moved["sw-0"].tags, moved["sw-1"].tags) == (("lab", "new"), ("new",))
    assert not any(d.enabled for d in moved.values())
    assert len(inventory_feed.changes_since(fleet, before).specs) == 4


def test_devices_and_targets_are_removed_together(fleet: Engine) -> None:
    """The scheduler learns of every removed target."""
    before = inventory_feed.version(fleet)
    found = filter_conditions.matching_devices(fleet, target_filter.parse("site:ber"))
    assert bulk_edits.remove_devices(fleet, [d.id for d in found]) == 3
    wanted = target_filter.parse("collector:snmp name:sw-0,sw-1")
    ids = [t.id for t in filter_conditions.matching_targets(fleet, wanted)]
    assert bulk_edits.remove_targets(fleet, ids) == 2
    assert devices.count(fleet) == 5
    assert len(inventory_feed.changes_since(fleet, before).removed) == 5


def test_a_target_is_added_to_the_devices_that_have_none_of_its_name(fleet: Engine) -> None:
    """A second time adds nothing."""
    ids = [d.id for d in filter_conditions.matching_devices(fleet, target_filter.parse("tag:core"))]
    draft = TargetDraft(collector="ping", interval_ms=30_000, options={"count": 2}, requires={})
    assert bulk_edits.add_targets(fleet, ids, draft) == 5
    assert bulk_edits.add_targets(fleet, ids, draft) == 0
    added = targets.show(fleet, "sw-0", "ping")
    assert (added.interval_ms, added.timeout_ms, added.options) == (30_000, 10_000, {"count": 2})
    assert added.enabled


def test_targets_that_are_added_together_are_a_change_of_their_siblings(fleet: Engine) -> None:
    """A worker that has a target cached learns of its new sibling, or it tells the device down."""
    [old] = [t for t in targets.listing(fleet) if t.device == "sw-0"]
    before = inventory_feed.version(fleet)
    wanted = target_filter.parse("name:sw-0,sw-5")  # sw-5 has such a target
    found = filter_conditions.matching_devices(fleet, wanted)
    assert bulk_edits.add_targets(fleet, [d.id for d in found], PING) == 1
    [new] = [t for t in targets.listing(fleet) if t.device == "sw-0" and t.name == "ping"]
    changed = inventory_feed.changes_since(fleet, before).specs
    assert sorted(spec.id for spec in changed) == [old.id, new.id]


def test_targets_are_changed_each_by_its_own_options_and_schedule(fleet: Engine) -> None:
    """One statement changes all targets that are alike."""
    ids = [t.id for t in targets.listing(fleet, limit=None)]
    statements: list[str] = []
    sa.event.listen(fleet, "before_cursor_execute", lambda *a: statements.append(a[2]))

    def draft_of(collector: str, options: Mapping[str, Any]) -> TargetDraft:
        return TargetDraft(interval_ms=120_000, options={**options, "from": collector})

    assert bulk_edits.edit_targets(fleet, ids, draft_of) == 8
    assert sum("UPDATE targets" in text for text in statements) == 2
    changed = targets.listing(fleet, limit=None)
    assert {t.interval_ms for t in changed} == {120_000}
    assert {(t.collector, t.options["from"]) for t in changed} == {
        ("snmp", "snmp"),
        ("ping", "ping"),
    }


def test_a_change_that_fits_not_every_target_changes_none(fleet: Engine) -> None:
    """The error names the first target that it does not fit."""
    ids = [t.id for t in targets.listing(fleet, limit=None)]
    before = targets.listing(fleet, limit=None)

    def draft_of(collector: str, options: Mapping[str, Any]) -> TargetDraft:
        return TargetDraft(interval_ms=2_000)  # shorter than the time-out of snmp, not of ping

    for change in (bulk_edits.check_target_edits, bulk_edits.edit_targets):
        with pytest.raises(errors.InvalidInput, match="sw-0/snmp: "):
            change(fleet, ids, draft_of)
    assert targets.listing(fleet, limit=None) == before


def test_the_credentials_of_some_devices_are_counted(fleet: Engine) -> None:
    """The empty name counts the devices without a credential."""
    credential_rows.add(fleet, "public", "community", "v1:x:1")
    devices.edit(fleet, "sw-1", DeviceDraft("sw-1", credential="public"))
    ids = [d.id for d in devices.listing(fleet)]
    assert bulk_edits.credentials_of(fleet, ids) == {"public": 1, "": 6}
