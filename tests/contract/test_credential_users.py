"""The users of a credential are counted in one statement, with the same result on every backend."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller.db.inventory import credential_rows, devices
from poller.domain.inventory.draft import DeviceDraft, TargetDraft


def test_devices_and_targets_that_use_a_credential_are_counted(engine: Engine) -> None:
    """A target without its own credential uses the credential of its device; a target with another
    credential does not count.
    """
    for name in ("site-wide", "special", "unused"):
        credential_rows.add(engine, name, "community", f"v1:{name}")
    plain, own = (
        TargetDraft(collector="snmp"),
        TargetDraft(collector="snmp", name="own", credential="special"),
    )
    devices.add(engine, DeviceDraft("sw1", "192.0.2.1", credential="site-wide"), [plain, own])
    devices.add(engine, DeviceDraft("sw2", "192.0.2.2", credential="site-wide"), [plain])
    devices.add(engine, DeviceDraft("sw3", "192.0.2.3"), [plain, own])
    statements: list[str] = []
    sa.event.listen(engine, "before_cursor_execute", lambda *given: statements.append(given[2]))
    found = {each.name: (each.devices, each.targets) for each in credential_rows.listing(engine)}
    assert found == {"site-wide": (2, 2), "special": (0, 2), "unused": (0, 0)}
    assert len([text for text in statements if "FROM credentials" in text]) == 1
