"""An import is all or nothing, however long the file is."""

from __future__ import annotations

import time

import pytest
from sqlalchemy.engine import Engine

from poller.db import credentials, devices, exports, imports, inventory, targets
from poller.db.imports import Imported, Row
from poller.domain.draft import DeviceDraft, TargetDraft

SNMP = TargetDraft(name="snmp", collector="snmp", options={"port": 161}, interval_ms=60_000, timeout_ms=5_000)


def row(name: str, *drafts: TargetDraft, **fields: object) -> Row:
    return Row(DeviceDraft(name, **{"address": "192.0.2.1", **fields}), drafts or (SNMP,))  # type: ignore[arg-type]


def exported(engine: Engine) -> list[tuple[DeviceDraft, list[TargetDraft]]]:
    return list(exports.every_device(engine))


def test_a_file_becomes_devices_sites_and_targets_in_one_change(engine: Engine) -> None:
    """One version, one wake-up, everything there."""
    credentials.add(engine, "public", "community", "v1:x:1")
    woken: list[int] = []
    rows = [
        row(f"sw{n:02}", site=f"s{n % 3}", credential="public", tags=("a", "b"), requires={"z": "1"}) for n in range(20)
    ]
    done = imports.apply_import(engine, rows, notify=woken.append)
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
    assert (target.options, target.interval_ms, target.timeout_ms, target.version) == ({"port": 161}, 60_000, 5_000, 2)


def test_an_import_gives_the_same_rows_as_adding_one_by_one(engine: Engine) -> None:
    """The bulk way knows the same defaults."""
    draft = TargetDraft(collector="snmp")
    devices.add(engine, DeviceDraft("one", address="192.0.2.1"), [draft])
    imports.apply_import(engine, [row("two", draft)])
    one, two = (exported(engine)[number] for number in (0, 1))
    assert one[1] == two[1]
    assert DeviceDraft("two", *_rest(one[0])) == two[0]


def _rest(draft: DeviceDraft) -> tuple[object, ...]:
    return (draft.address, draft.site, draft.credential, draft.tags, draft.requires, draft.enabled)


def test_existing_devices_are_refused_unless_update_is_asked_for(engine: Engine) -> None:
    """Nothing of the file gets in, not even the new ones."""
    imports.apply_import(engine, [row("sw1")])
    with pytest.raises(imports.Refused) as caught:
        imports.apply_import(engine, [row("sw0"), row("sw1"), row("sw2")])
    assert [(misfit.row, misfit.problem.field) for misfit in caught.value.misfits] == [(1, "name")]
    assert devices.count(engine) == 1
    assert inventory.version(engine) == 1


def test_an_update_changes_what_is_given_and_keeps_the_rest(engine: Engine) -> None:
    """Fields and targets that the file does not mention stay; every target of the device is stamped."""
    imports.apply_import(engine, [row("sw1", SNMP, TargetDraft(collector="routeros"), site="ams", tags=("x",))])
    before = inventory.version(engine)
    change = Row(DeviceDraft("sw1", address="192.0.2.9"), [TargetDraft(name="snmp", interval_ms=30_000)])
    assert imports.apply_import(engine, [change, row("sw2")], update=True) == Imported(1, 1, 1, 1)
    found = devices.show(engine, "sw1")
    assert (found.address, found.site, found.tags, found.targets) == ("192.0.2.9", "ams", ("x",), 2)
    changed = targets.show(engine, "sw1", "snmp")
    assert (changed.interval_ms, changed.timeout_ms, changed.options) == (30_000, 5_000, {"port": 161})
    assert len(inventory.changes_since(engine, before).specs) == 3


def test_an_update_keeps_target_ids(engine: Engine) -> None:
    """History and schedule belong to the id."""
    imports.apply_import(engine, [row("sw1")])
    before = targets.show(engine, "sw1", "snmp").id
    imports.apply_import(engine, [row("sw1")], update=True)
    assert targets.show(engine, "sw1", "snmp").id == before


def test_every_misfit_is_reported_with_its_row(engine: Engine) -> None:
    """Unknown credentials, names given twice, missing addresses and times that do not fit."""
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
        row("old", TargetDraft(name="snmp", interval_ms=4_000)),
    ]
    found = imports.check(engine, rows, update=True)
    assert [(misfit.row, misfit.problem.field) for misfit in found] == [
        (1, "name"),
        (2, "credential"),
        (3, "address"),
        (4, "timeout"),
        (5, "target"),
        (6, "collector"),
        (7, "timeout"),
    ]


def test_a_dry_run_counts_and_changes_nothing(engine: Engine) -> None:
    """Not the rows, not the version, not the scheduler."""
    woken: list[int] = []
    done = imports.apply_import(engine, [row("sw1"), row("sw2")], dry_run=True, notify=woken.append)
    assert done == Imported(2, 0, 2, 0)
    assert (devices.count(engine), inventory.version(engine), woken) == (0, 0, [])


def test_what_is_exported_can_be_imported_elsewhere(engine: Engine, tmp_path: object) -> None:
    """Every field of every row survives."""
    credentials.add(engine, "public", "community", "v1:x:1")
    rows = [
        row(
            "sw1",
            SNMP,
            TargetDraft(name="b", collector="snmp", credential="public", requires={"k": "v"}, enabled=False),
        ),
        row("bare", enabled=False, site="ams"),
        Row(DeviceDraft("none", address="::1")),
    ]
    imports.apply_import(engine, rows)
    before = exported(engine)
    devices.remove(engine, ["sw1", "bare", "none"])
    imports.apply_import(engine, [Row(device, drafts) for device, drafts in before])
    assert exported(engine) == before


def test_a_large_import_takes_few_statements(engine: Engine) -> None:
    """Twelve thousand devices, more than one statement takes, arrive within the budget of a thousand by hand."""
    begin = time.monotonic()
    done = imports.apply_import(engine, [row(f"sw{n:05}", site=f"s{n % 7}") for n in range(12_000)])
    assert done == Imported(12_000, 0, 12_000, 0)
    assert devices.count(engine, site="s3") == len(range(3, 12_000, 7))
    assert time.monotonic() - begin < 30
