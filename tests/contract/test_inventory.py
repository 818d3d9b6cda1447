"""Every change of the inventory is one numbered step that the scheduler and the workers can
follow.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller import errors
from poller.db import engine as sql
from poller.db.inventory import credential_rows, devices, inventory_feed, sites, targets
from poller.db.inventory.inventory_feed import Author
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.inventory.poll_target import PollTarget, TargetSpec

SNMP = TargetDraft(
    collector="snmp", interval_ms=60_000, timeout_ms=5_000, options={"module": "if_mib"}
)


def add(engine: Engine, name: str, *drafts: TargetDraft, **fields: object) -> devices.Device:
    return devices.add(engine, DeviceDraft(name, address="192.0.2.1", **fields), drafts)  # type: ignore[arg-type]


def ids(engine: Engine, device: str) -> list[int]:
    return [target.id for target in targets.of_device(engine, device)]


def changed(engine: Engine, since: int) -> list[int]:
    return sorted(spec.id for spec in inventory_feed.changes_since(engine, since).specs)


def everything(engine: Engine) -> tuple[int, list[TargetSpec]]:
    with inventory_feed.all_specs(engine) as fleet:
        return fleet.version, list(fleet.specs)


def test_a_new_inventory_is_at_version_zero_and_empty(engine: Engine) -> None:
    """A scheduler that starts before any device exists reads an empty inventory without an
    error.
    """
    assert inventory_feed.version(engine) == 0
    assert inventory_feed.changes_since(engine, 0) == inventory_feed.Changes(0, [], [])
    assert everything(engine) == (0, [])


def test_a_device_with_its_first_target_is_one_change(engine: Engine) -> None:
    """A new device with a target makes one version and one spec, with the queue of its domain."""
    add(engine, "sw1", SNMP, requires={"zone": "dmz"})
    changes = inventory_feed.changes_since(engine, 0)
    assert changes.version == 1
    assert [(s.queue, s.interval_ms, s.timeout_ms, s.enabled) for s in changes.specs] == [
        ("poll.snmp;zone=dmz", 60_000, 5_000, True)
    ]


def test_all_specs_and_changes_since_zero_agree(engine: Engine) -> None:
    """A read of all specs and a read of all changes since zero give the same fleet."""
    for number in range(5):
        add(engine, f"sw{number}", SNMP, TargetDraft(collector="routeros"))
    targets.remove(engine, "sw3", "snmp")
    changes, fleet = inventory_feed.changes_since(engine, 0), everything(engine)
    assert fleet[0] == changes.version
    assert sorted(fleet[1], key=lambda s: s.id) == sorted(changes.specs, key=lambda s: s.id)
    assert len(fleet[1]) == 9


def test_requirements_of_site_device_and_target_are_merged(engine: Engine) -> None:
    """The more specific level of a requirement wins, as in routing."""
    add(
        engine,
        "sw1",
        TargetDraft(collector="snmp", requires={"c": "3"}),
        site="ams",
        requires={"b": "2", "c": "2"},
    )
    sites.edit(engine, "ams", {"a": "1", "b": "1"})
    assert [spec.queue for spec in everything(engine)[1]] == ["poll.snmp;a=1;b=2;c=3"]


def test_editing_a_device_changes_all_its_targets_and_no_others(engine: Engine) -> None:
    """An edited device gives every target of the device a new version, so that workers drop them
    from their caches.
    """
    add(engine, "sw1", SNMP, TargetDraft(collector="routeros"))
    add(engine, "sw2", SNMP)
    before = inventory_feed.version(engine)
    devices.edit(engine, "sw1", DeviceDraft("sw1", address="192.0.2.9"))
    assert changed(engine, before) == sorted(ids(engine, "sw1"))


def test_editing_a_site_changes_the_targets_of_its_devices(engine: Engine) -> None:
    """A site's requirements decide the queue of each of its targets."""
    add(engine, "sw1", SNMP, site="ams")
    add(engine, "sw2", SNMP, site="ber")
    before = inventory_feed.version(engine)
    sites.edit(engine, "ams", {"site": "ams"})
    assert changed(engine, before) == ids(engine, "sw1")


def test_a_new_secret_changes_the_targets_that_use_it(engine: Engine) -> None:
    """Targets that inherit or name the credential change; a target with another credential does
    not.
    """
    credential_rows.add(engine, "a", "community", "v1:x:1")
    credential_rows.add(engine, "b", "community", "v1:x:2")
    add(engine, "inherits", SNMP, credential="a")
    add(engine, "overrides", TargetDraft(collector="snmp", credential="b"), credential="a")
    add(engine, "names-it", TargetDraft(collector="snmp", credential="a"))
    before = inventory_feed.version(engine)
    assert credential_rows.rotate(engine, "a", "community", "v1:x:3") == 2
    assert changed(engine, before) == sorted(ids(engine, "inherits") + ids(engine, "names-it"))


def test_removal_is_reported_by_id_and_ids_are_never_used_again(engine: Engine) -> None:
    """A new target does not inherit the history or the board entry of a removed target."""
    add(engine, "sw1", SNMP)
    [old] = ids(engine, "sw1")
    before = inventory_feed.version(engine)
    assert devices.remove(engine, ["sw1"]) == 1
    assert inventory_feed.changes_since(engine, before) == inventory_feed.Changes(
        before + 1, [], [old]
    )
    add(engine, "sw1", SNMP)
    assert ids(engine, "sw1") != [old]


def test_removing_several_devices_is_all_or_nothing(engine: Engine) -> None:
    """One unknown name among several removes no device."""
    add(engine, "sw1", SNMP)
    with pytest.raises(errors.NotFound, match="sw9"):
        devices.remove(engine, ["sw1", "sw9"])
    assert devices.show(engine, "sw1").targets == 1


@pytest.mark.parametrize("what", ["device", "target"])
def test_disabled_targets_are_reported_as_disabled(engine: Engine, what: str) -> None:
    """The scheduler reads that a target is disabled, and later that it is enabled again."""
    add(engine, "sw1", SNMP)
    for enabled in (False, True):
        before = inventory_feed.version(engine)
        if what == "device":
            devices.edit(engine, "sw1", DeviceDraft("sw1", enabled=enabled))
        else:
            targets.edit(engine, "sw1", "snmp", TargetDraft(enabled=enabled))
        assert [spec.enabled for spec in inventory_feed.changes_since(engine, before).specs] == [
            enabled
        ]


def test_a_worker_gets_everything_but_the_secret(engine: Engine) -> None:
    """One query reads the targets of a batch without secrets; removed ids are missing, not an
    error.
    """
    credential_rows.add(engine, "public", "community", "v1:x:1")
    add(engine, "sw1", SNMP, site="ams", credential="public", tags=("core", "lab"))
    [key] = ids(engine, "sw1")
    found = inventory_feed.poll_targets(engine, [key, key + 1000])
    device = devices.show(engine, "sw1")
    [credential] = credential_rows.listing(engine)
    assert found == {
        key: PollTarget(
            id=key,
            version=2,
            name="snmp",
            device_id=device.id,
            device="sw1",
            address="192.0.2.1",
            site="ams",
            collector="snmp",
            interval_ms=60_000,
            timeout_ms=5_000,
            options={"module": "if_mib"},
            tags=("core", "lab"),
            credential_id=credential.id,
        )
    }
    assert inventory_feed.credential(engine, credential.id) == inventory_feed.Sealed(
        1, "v1:x:1", "public", "community"
    )


def test_more_ids_than_one_statement_takes(engine: Engine) -> None:
    """A list of ids longer than one statement takes is read in pieces."""
    add(engine, "sw1", SNMP)
    [key] = ids(engine, "sw1")
    assert set(inventory_feed.poll_targets(engine, [*range(10_000_000, 10_040_000), key])) == {key}


def test_a_failed_change_leaves_the_version_alone(engine: Engine) -> None:
    """A refused edit makes no version and no wake-up."""
    add(engine, "sw1", SNMP)
    woken: list[int] = []
    with pytest.raises(errors.AlreadyExists, match="sw1"):
        devices.add(
            engine, DeviceDraft("sw1", address="192.0.2.2"), author=Author(notify=woken.append)
        )
    with pytest.raises(errors.UnknownName, match="nope"):
        devices.edit(
            engine, "sw1", DeviceDraft("sw1", credential="nope"), author=Author(notify=woken.append)
        )
    assert (inventory_feed.version(engine), woken) == (1, [])


def test_the_scheduler_is_woken_after_the_commit(engine: Engine) -> None:
    """A process that receives the wake-up can already read the change."""
    seen: list[Sequence[int]] = []
    devices.add(
        engine,
        DeviceDraft("sw1", address="192.0.2.1"),
        [SNMP],
        author=Author(notify=lambda number: seen.append((number, inventory_feed.version(engine)))),
    )
    assert seen == [(1, 1)]


def test_a_failing_wake_up_does_not_fail_the_edit(engine: Engine) -> None:
    """An edit succeeds while Redis is down."""

    def down(version: int) -> None:
        raise errors.StoreUnavailable("Redis is away")

    devices.add(engine, DeviceDraft("sw1", address="192.0.2.1"), author=Author(notify=down))
    assert devices.show(engine, "sw1").address == "192.0.2.1"


def test_concurrent_changes_are_seen_in_order_and_none_is_lost(
    upgraded_url: str, engine: Engine
) -> None:
    """A reader that follows versions while eight writers work reads every target exactly once."""
    writers, each = 8, 6
    engines = [sql.create(upgraded_url) for _ in range(writers)]
    failures: list[Exception] = []

    def write(number: int) -> None:
        try:
            for item in range(each):
                add(engines[number], f"sw-{number}-{item}", SNMP)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(writers)]
    for thread in threads:
        thread.start()
    seen: list[int] = []
    version = 0
    while any(thread.is_alive() for thread in threads) or version < inventory_feed.version(engine):
        changes = inventory_feed.changes_since(engine, version)
        assert all(version < spec.version <= changes.version for spec in changes.specs)
        seen += [spec.id for spec in changes.specs]
        version = changes.version
    for thread in threads:
        thread.join()
    for other in engines:
        other.dispose()
    assert failures == []
    assert version == writers * each
    assert len(seen) == len(set(seen)) == writers * each


def test_a_restored_backup_is_detected(engine: Engine) -> None:
    """After a restored backup the version is smaller than the scheduler's."""
    add(engine, "sw1", SNMP)
    assert inventory_feed.changes_since(engine, 500).version < 500


def test_a_stream_of_specs_is_one_snapshot(engine: Engine, upgraded_url: str) -> None:
    """A change in the middle of a long read shows in the next read, not in this one."""
    for number in range(3):
        add(engine, f"sw{number}", SNMP)
    other = sql.create(upgraded_url)
    with inventory_feed.all_specs(engine) as fleet:
        first = next(fleet.specs)
        add(other, "late", SNMP)
        rest = list(fleet.specs)
    other.dispose()
    assert (fleet.version, 1 + len(rest)) == (3, 3)
    assert first.version <= 3
    assert len(everything(engine)[1]) == 4


def test_sql_refuses_an_interval_below_one_second(engine: Engine) -> None:
    """The table itself refuses an interval that the rules refuse."""
    add(engine, "sw1", SNMP)
    with pytest.raises(errors.StoreConflict), sql.writing(engine) as conn:
        conn.execute(sa.text("UPDATE targets SET interval_ms = 10"))


def test_a_target_knows_its_siblings_and_a_new_one_is_a_change_of_all(engine: Engine) -> None:
    """A worker that has a target cached learns of a new sibling, enabled or not."""
    add(engine, "sw1", SNMP, TargetDraft(name="b", collector="snmp", enabled=False))
    add(engine, "sw2", SNMP)
    one, two = sorted(ids(engine, "sw1"))
    [other] = ids(engine, "sw2")
    found = inventory_feed.poll_targets(engine, [one, two, other])
    assert [found[each].siblings for each in (one, two, other)] == [(two,), (one,), ()]

    before = inventory_feed.version(engine)
    new = targets.add(engine, "sw1", TargetDraft(name="c", collector="snmp")).id
    assert changed(engine, before) == [one, two, new]
    assert inventory_feed.poll_targets(engine, [one])[one].siblings == (two, new)
