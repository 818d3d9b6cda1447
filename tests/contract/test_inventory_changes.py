"""Changes of the inventory with an expected version and an audit row, on every database."""

from __future__ import annotations

import pytest
from sqlalchemy.engine import Engine

from poller import errors
from poller.db.access import audit_rows
from poller.db.access.audit_rows import AuditQuery
from poller.db.inventory import bulk_edits, credential_rows, devices, exports, imports, targets
from poller.db.inventory.inventory_feed import Author
from poller.domain.access.actor import Actor, ActorKind
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.inventory.tag_change import TagChange
from poller.domain.scheduling.interval import Policy

KIM = Author(Actor("kim", ActorKind.CLI, "host-1"))
PING = TargetDraft(collector="ping", interval_ms=60_000, timeout_ms=5_000, policy=Policy.FIXED)


@pytest.fixture
def fleet(engine: Engine) -> Engine:
    for name in ("c1", "c2", "c3"):
        credential_rows.add(engine, name, "community", "envelope-of-" + name)
    for name, site in (("sw1", "ams"), ("sw2", "ams"), ("rt1", "fra")):
        draft = DeviceDraft(name, "192.0.2.1", site, credential="c1" if site == "ams" else "c2")
        devices.add(engine, draft, [PING])
    return engine


def actions(engine: Engine) -> list[tuple[str, str, int]]:
    rows = audit_rows.listing(engine, AuditQuery())
    return [(row.action, row.subject, row.count) for row in reversed(rows)]


def test_a_change_for_an_old_version_is_refused_in_its_transaction(fleet: Engine) -> None:
    """Devices, targets and credentials alike; a refused change leaves no audit row."""
    device = devices.show(fleet, "sw1").tag
    target = targets.show(fleet, "sw1", "ping").tag
    credential = credential_rows.show(fleet, "c1").tag
    tags = TagChange(add=("core",))
    assert devices.edit(fleet, "sw1", DeviceDraft("sw1"), KIM, tags, device).tags == ("core",)
    off = TargetDraft(enabled=False)
    assert not targets.edit(fleet, "sw1", "ping", off, KIM, target).enabled
    assert credential_rows.rotate(fleet, "c1", "community", "new", KIM, credential) == 2
    before = actions(fleet)
    for change in (
        lambda: devices.edit(fleet, "sw1", DeviceDraft("sw1"), KIM, tags, device),
        lambda: devices.remove(fleet, ["sw1"], KIM, device),
        lambda: targets.edit(fleet, "sw1", "ping", off, KIM, target),
        lambda: targets.remove(fleet, "sw1", "ping", KIM, target),
        lambda: credential_rows.rotate(fleet, "c1", "community", "new", KIM, credential),
        lambda: credential_rows.remove(fleet, "c1", KIM, credential),
    ):
        with pytest.raises(errors.EditConflict):
            change()
    assert actions(fleet) == before


def test_changes_of_many_leave_one_row_each(fleet: Engine) -> None:
    """The filter is the subject; old values are counted, and no envelope is in a row."""
    ids = [device.id for device in devices.listing(fleet)]
    target_ids = [target.id for target in targets.listing(fleet)]
    draft = DeviceDraft("", credential="c3")
    bulk_edits.edit_devices(fleet, ids, draft, TagChange(add=("x",)), KIM, "name:*")
    http = TargetDraft(collector="http", name="web", interval_ms=60_000, timeout_ms=5_000)
    bulk_edits.add_targets(fleet, ids, http, KIM, "name:*")
    edit = TargetDraft(enabled=False, credential="c1")
    bulk_edits.edit_targets(fleet, target_ids, lambda _c, _o: edit, KIM, "collector:ping")
    bulk_edits.remove_targets(fleet, target_ids, KIM, "collector:ping")
    bulk_edits.remove_devices(fleet, ids[:2], KIM, "site:ams")
    row = imports.Row(DeviceDraft("im1", "192.0.2.1"), [PING])
    imports.apply_import(fleet, [row], author=KIM)
    credential_rows.reseal(fleet, lambda _n, _k, envelope: envelope, KIM, "key-1")
    assert actions(fleet) == [
        ("device.edit", "name:*", 3),
        ("target.add", "name:*", 3),
        ("target.edit", "collector:ping", 3),
        ("target.remove", "collector:ping", 3),
        ("device.remove", "site:ams", 2),
        ("device.import", "file", 1),
        ("credential.rotate-key", "all credentials", 3),
    ]
    rows = audit_rows.listing(fleet, AuditQuery())[::-1]
    assert rows[0].before == {"credential": {"c1": 2, "c2": 1}, "tags": {"[]": 3}}
    assert rows[2].before == {"enabled": {"True": 3}, "credential": {"": 3}}
    assert rows[2].after["credential"] == "c1"
    assert "envelope" not in str(rows)


def test_what_a_site_uses_and_exports(fleet: Engine) -> None:
    """Credentials of devices and of targets count; other sites do not."""
    targets.edit(fleet, "sw1", "ping", TargetDraft(credential="c3"))
    assert credential_rows.used_at(fleet, "ams") == {"c1", "c3"}
    assert credential_rows.used_at(fleet, "none") == set()
    assert [device.name for device, _ in exports.every_device(fleet, "ams")] == ["sw1", "sw2"]
    found = targets.by_id(fleet, targets.show(fleet, "rt1", "ping").id)
    assert found is not None
    assert (found.full_name, found.site) == ("rt1/ping", "fra")
    assert targets.by_id(fleet, 10**9) is None
