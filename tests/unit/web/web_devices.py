"""A device for the pages, as the database would return it."""

from __future__ import annotations

from datetime import UTC, datetime

from poller.db.inventory.devices import Device

NOW = datetime(2026, 11, 19, tzinfo=UTC)
DEVICE = Device(
    id=1,
    name="sw1",
    address="192.0.2.1",
    site="west",
    credential="lab",
    tags=("core", "new"),
    requires={"zone": "dmz"},
    enabled=True,
    parent="",
    created_at=NOW,
    updated_at=NOW,
    targets=1,
)
