"""Who may send us notifications? Enabled devices that have an SNMP credential, where they are and what is polled."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller.db import engine as sql
from poller.db.inventory import inventory_feed
from poller.db.tables import credentials, devices, targets

KINDS = ("community", "snmpv3")


@dataclass(frozen=True, slots=True)
class Sender:
    """A device; `credentials` are the ids of those it may vouch with, `targets` the enabled ones."""

    device_id: int
    device: str
    address: str
    targets: tuple[int, ...]
    credentials: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Senders:
    version: int
    senders: tuple[Sender, ...]


def read(engine: Engine) -> Senders:
    """All of them at one version of the inventory."""
    with sql.reading(engine) as conn:
        version = inventory_feed.version_in(conn)
        usable = set(
            conn.execute(sa.select(credentials.c.id).where(credentials.c.kind.in_(KINDS))).scalars()
        )
        found: dict[int, tuple[str, str, list[int], dict[int, None]]] = {}
        for device_id, name, address, target_id, own, inherited in conn.execute(_ENABLED):
            _, _, ids, vouching = found.setdefault(device_id, (name, address, [], {}))
            ids.append(target_id)
            vouching.update({key: None for key in (own, inherited) if key in usable})
    return Senders(
        version,
        tuple(
            Sender(key, n, a, tuple(ids), tuple(v)) for key, (n, a, ids, v) in found.items() if v
        ),
    )


_ENABLED = (
    sa.select(
        devices.c.id,
        devices.c.name,
        devices.c.address,
        targets.c.id,
        targets.c.credential_id,
        devices.c.credential_id,
    )
    .select_from(targets.join(devices, targets.c.device_id == devices.c.id))
    .where(targets.c.enabled, devices.c.enabled)
    .order_by(devices.c.id, targets.c.id)
)
