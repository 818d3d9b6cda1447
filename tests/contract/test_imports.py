"""An import is all or nothing, however long the file is."""

from __future__ import annotations

import time

import pytest
from sqlalchemy.engine import Engine

from poller import errors
from poller.db.inventory import (
    credential_rows,
    devices,
    exports,
    filter_conditions,
    imports,
    inventory_feed,
    targets,
)
from poller.db.inventory.imports import Imported, Row
from poller.db.inventory.inventory_feed import Author
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.inventory.import_changes import ImportChanges
from poller.domain.inventory.target_filter import TargetFilter
from poller.domain.scheduling.interval import Policy
from poller.domain.scheduling.schedule import Defaults, Schedule

SNMP = TargetDraft(
    name="snmp", collector="snmp", options={"port": 161}, interval_ms=60_000, timeout_ms=5_000
)


def row(name: str, *drafts: TargetDraft, **fields: object) -> Row:
    return Row(DeviceDraft(name, **{"address": "192.0.2.1", **fields}), drafts or (SNMP,))  # type: ignore[arg-type]


def exported(engine: Engine) -> list[tuple[DeviceDraft, list[TargetDraft]]]:
    return list(exports.every_device(engine))


def test_a_file_becomes_devices_sites_and_targets_in_one_change(engine: Engine) -> None:
    """An import makes one inventory version and one wake-up, with every row in place."""
    credential_rows.add(engine, "public", "community", "v1:x:1")
    woken: list[int] = []
    rows = [
        row(
            f"sw{n:02}", site=f"s{n % 3}", credential="public", tags=("a", "b"), requires={"z": "1"}
        )
        for n in range(20)
    ]
    done = imports.apply_import(engine, rows, author=Author(notify=woken.append))
    assert done == Imported(20, 0, 20, 0)
    assert woken == [2]
    found = devices.show(engine, "sw07")
    assert (found.site, found.credential, found.tags, found.requires, found.targets) == (
        "s1",
        "public",
        ("a", "b"),
        {"z": "1"},
        1,
    )
    target = targets.show(engine, "sw07", "snmp")
    assert (target.options, target.interval_ms, target.timeout_ms, target.version) == (
        {"port": 161},
        60_000,
        5_000,
        2,
    )


def test_an_import_gives_the_same_rows_as_adding_one_by_one(engine: Engine) -> None:
    """An import applies the same defaults as adding devices one by one."""
    draft = TargetDraft(collector="snmp")
    devices.add(engine, DeviceDraft("one", address="192.0.2.1"), [draft])
    imports.apply_import(engine, [row("two", draft)])
    one, two = (exported(engine)[number] for number in (0, 1))
    assert one[1] == two[1]
    assert DeviceDraft("two", *_rest(one[0])) == two[0]


def _rest(draft: DeviceDraft) -> tuple[object, ...]:
    fields = (draft.address, draft.site, draft.credential, draft.tags, draft.requires)
    return (*fields, draft.enabled, draft.parent)


def test_existing_devices_are_refused_without_update(engine: Engine) -> None:
    """An import that names an existing device stores none of its rows."""
    imports.apply_import(engine, [row("sw1")])
    with pytest.raises(imports.Refused) as caught:
        imports.apply_import(engine, [row("sw0"), row("sw1"), row("sw2")])
    assert [(misfit.row, misfit.problem.field) for misfit in caught.value.misfits] == [(1, "name")]
    assert devices.count(engine) == 1
    assert inventory_feed.version(engine) == 1


def test_an_update_changes_only_the_given_fields(engine: Engine) -> None:
    """Fields and targets that the file does not mention stay; every target of the device is
    stamped.
    """
    imports.apply_import(
        engine, [row("sw1", SNMP, TargetDraft(collector="routeros"), site="ams", tags=("x",))]
    )
    before = inventory_feed.version(engine)
    change = Row(
        DeviceDraft("sw1", address="192.0.2.9"), [TargetDraft(name="snmp", interval_ms=30_000)]
    )
    assert imports.apply_import(engine, [change, row("sw2")], update=True) == Imported(1, 1, 1, 1)
    found = devices.show(engine, "sw1")
    assert (found.address, found.site, found.tags, found.targets) == ("192.0.2.9", "ams", ("x",), 2)
    changed = targets.show(engine, "sw1", "snmp")
    assert (changed.interval_ms, changed.timeout_ms, changed.options) == (
        30_000,
        5_000,
        {"port": 161},
    )
    assert len(inventory_feed.changes_since(engine, before).specs) == 3


def test_an_update_leaves_equal_rows_alone(engine: Engine) -> None:
    """Of a hundred rows the three changed ones get a new version, and workers keep the rest
    cached.
    """
    rows = [
        row(f"sw{n:03}", SNMP, TargetDraft(name="b", collector="snmp"), tags=("a",))
        for n in range(100)
    ]
    imports.apply_import(engine, rows)
    before = inventory_feed.version(engine)
    rows[7] = row("sw007", SNMP, TargetDraft(name="b", collector="snmp"), tags=("a", "b"))
    rows[8] = row(
        "sw008", SNMP, TargetDraft(name="b", collector="snmp", interval_ms=30_000), tags=("a",)
    )
    rows[9] = row("sw009", SNMP, TargetDraft(name="c", collector="snmp"), tags=("a",))
    done = imports.apply_import(engine, rows, update=True)
    assert done == Imported(0, 1, 1, 1, unchanged=99, targets_unchanged=198)
    changed = inventory_feed.changes_since(engine, before).specs
    # Both of sw007, whose device changed; one of sw008; the new one of sw009 and its two siblings.
    assert len(changed) == 6
    assert {spec.version for spec in changed} == {before + 1}


def test_an_update_that_changes_nothing_is_no_change(engine: Engine) -> None:
    """An update without changes makes no version and no wake-up, whatever order of keys the
    database has.
    """
    options = {"modules": ["b", "a"], "zz": 1, "a": {"y": 1, "x": 2}}
    rows = [
        row(
            "sw1",
            TargetDraft(name="t", collector="snmp", options=options),
            requires={"zone": "z", "a": "b"},
        )
    ]
    imports.apply_import(engine, rows)
    woken: list[int] = []
    for again in (rows, [Row(device, drafts) for device, drafts in exported(engine)]):
        done = imports.apply_import(engine, again, update=True, author=Author(notify=woken.append))
        assert done == Imported(0, 0, 0, 0, unchanged=1, targets_unchanged=1)
    assert (inventory_feed.version(engine), woken) == (1, [])


ADAPTIVE = TargetDraft(
    name="fast",
    collector="snmp",
    interval_ms=10_000,
    policy=Policy.ADAPTIVE,
    min_ms=5_000,
    max_ms=60_000,
    staleness="age",
)


def test_an_update_may_change_the_policy(engine: Engine) -> None:
    """A fixed target becomes adaptive with the defaults of the draft; the way back drops the
    bounds.
    """
    imports.apply_import(engine, [row("sw1", SNMP, ADAPTIVE)])
    defaults = Defaults(Schedule(max_ms=90_000))
    rows = [
        row(
            "sw1",
            TargetDraft(name="snmp", policy=Policy.ADAPTIVE, defaults=defaults),
            TargetDraft(name="fast", policy=Policy.FIXED),
        )
    ]
    assert imports.apply_import(engine, rows, update=True) == Imported(0, 0, 0, 2, unchanged=1)
    found = [targets.show(engine, "sw1", name) for name in ("snmp", "fast")]
    assert [(t.policy, t.interval_ms, t.min_ms, t.max_ms, t.staleness) for t in found] == [
        (Policy.ADAPTIVE, 60_000, 5_000, 90_000, "steady"),
        (Policy.FIXED, 10_000, None, None, None),
    ]


def test_an_update_keeps_target_ids(engine: Engine) -> None:
    """A target keeps its id through an update, since history and schedule belong to the id."""
    imports.apply_import(engine, [row("sw1")])
    before = targets.show(engine, "sw1", "snmp").id
    imports.apply_import(engine, [row("sw1")], update=True)
    assert targets.show(engine, "sw1", "snmp").id == before


def test_every_error_is_reported_with_its_row(engine: Engine) -> None:
    """Unknown credentials, repeated names, missing addresses and times that do not fit are reported
    together.
    """
    imports.apply_import(engine, [row("old")])
    slow = TargetDraft(name="slow", collector="snmp", interval_ms=5_000, timeout_ms=9_000)
    rows = [
        row("a"),
        row("a"),
        row("b", credential="nope"),
        row("c", address=None),
        row("d", slow),
        row("e", SNMP, SNMP),
        row("f", TargetDraft(name="x")),
        row("old", SNMP, TargetDraft(name="snmp", interval_ms=4_000)),
        row("g", SNMP, TargetDraft(name="x", collector="snmp", credential="nope", min_ms=5_000)),
    ]
    found = imports.check(engine, rows, update=True)
    assert [(misfit.row, misfit.target, misfit.problem.field) for misfit in found] == [
        (1, None, "name"),
        (2, None, "credential"),
        (3, None, "address"),
        (4, 0, "timeout"),
        (5, 1, "name"),
        (6, 0, "collector"),
        (7, 1, "timeout"),
        (7, 1, "name"),
        (8, 1, "credential"),
        (8, 1, "min"),
    ]


def test_a_dry_run_counts_and_changes_nothing(engine: Engine) -> None:
    """A dry run changes no row and no version, and wakes no scheduler."""
    woken: list[int] = []
    done = imports.apply_import(
        engine, [row("sw1"), row("sw2")], dry_run=True, author=Author(notify=woken.append)
    )
    assert done == Imported(2, 0, 2, 0)
    assert (devices.count(engine), inventory_feed.version(engine), woken) == (0, 0, [])


def test_an_export_can_be_imported_elsewhere(engine: Engine, tmp_path: object) -> None:
    """Every field of every row survives an export and an import."""
    credential_rows.add(engine, "public", "community", "v1:x:1")
    rows = [
        row(
            "sw1",
            SNMP,
            TargetDraft(
                name="b", collector="snmp", credential="public", requires={"k": "v"}, enabled=False
            ),
            ADAPTIVE,
        ),
        row("bare", enabled=False, site="ams"),
        Row(DeviceDraft("none", address="::1")),
    ]
    imports.apply_import(engine, rows)
    before = exported(engine)
    devices.remove(engine, ["sw1", "bare", "none"])
    imports.apply_import(engine, [Row(device, drafts) for device, drafts in before])
    assert exported(engine) == before


def test_an_import_is_held_to_the_changes_of_its_preview(engine: Engine) -> None:
    """A new site has another id in every try, and is the same change; another value is not."""
    imports.apply_import(engine, [row("sw1"), row("same")])
    rows = [row("sw1", site="new", parent="same"), row("sw2", site="new"), row("same")]
    seen = ImportChanges()
    imports.apply_import(engine, rows, update=True, dry_run=True, changes=seen)
    assert [(each.device, each.target, each.is_new) for each in seen.rows] == [
        ("sw1", "", False),
        ("sw2", "", True),
        ("sw2", "snmp", True),
    ]
    assert seen.rows[0].fields == [("site", "", "new"), ("parent", "", "same")]
    devices.edit(engine, "sw1", DeviceDraft("sw1", site="other"))
    version = inventory_feed.version(engine)
    with pytest.raises(errors.EditConflict):
        imports.apply_import(engine, rows, update=True, changes=ImportChanges(seen.digest))
    assert inventory_feed.version(engine) == version
    devices.edit(engine, "sw1", DeviceDraft("sw1", site=""))
    done = imports.apply_import(engine, rows, update=True, changes=ImportChanges(seen.digest))
    assert done == Imported(1, 1, 1, 0, 1, 2)


def test_a_large_import_takes_seconds(engine: Engine) -> None:
    """An import of more devices than one statement takes, twelve thousand, ends within thirty
    seconds.
    """
    begin = time.monotonic()
    done = imports.apply_import(engine, [row(f"sw{n:05}", site=f"s{n % 7}") for n in range(12_000)])
    assert done == Imported(12_000, 0, 12_000, 0)
    at_site = filter_conditions.matching_devices(engine, TargetFilter(sites=("s3",)))
    assert len(at_site) == len(range(3, 12_000, 7))
    assert time.monotonic() - begin < 30


def test_a_large_file_of_parents_is_checked_within_seconds(engine: Engine) -> None:
    """The parents of all devices are followed once, not once for each of them; a circle of many
    devices is refused by each, in a line that can be read.
    """
    behind = [row(f"sw{n:05}", parent="core") for n in range(15_000)]
    circle = [row(f"ring{n:03}", parent=f"ring{(n + 1) % 100:03}") for n in range(100)]
    begin = time.monotonic()
    found = imports.check(engine, [row("core"), *behind, *circle])
    assert time.monotonic() - begin < 8
    assert len(found) == 100
    names = " -> ".join(["ring099", *(f"ring{n:03}" for n in range(9))])
    assert (
        found[99].problem.message == f"the chain of parents goes round: {names} -> ... -> ring099"
    )
