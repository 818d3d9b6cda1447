"""Devices whose SNMP notifications are accepted: enabled ones with an SNMP credential."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller.db import engine as sql
from poller.db.inventory import inventory_feed
from poller.db.tables import credentials, devices, targets

KINDS = ("community", "snmpv3")


@dataclass(frozen=True, slots=True)
class Sender:
    """A device, its enabled targets, and the ids of the credentials its notifications may use."""

    device_id: int
    device: str
    address: str
    targets: tuple[int, ...]
    credentials: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Senders:
    """All senders at one version of the inventory."""

    version: int
    senders: tuple[Sender, ...]


def read(engine: Engine) -> Senders:
    with sql.reading(engine) as conn:
        version = inventory_feed.version_in(conn)
        snmp_kinds = sa.select(credentials.c.id).where(credentials.c.kind.in_(KINDS))
        usable = set(conn.execute(snmp_kinds).scalars())
        rows = conn.execute(_ENABLED).all()
    senders = []
    for device_id, group in groupby(rows, key=attrgetter("device_id")):
        targets_of_device = list(group)
        sender = _sender(device_id, targets_of_device, usable)
        if sender.credentials:
            senders.append(sender)
    return Senders(version, tuple(senders))


def _sender(device_id: int, rows: Sequence[Any], usable: Collection[int]) -> Sender:
    credential_ids: dict[int, None] = {}  # an ordered set
    for row in rows:
        for credential_id in (row.own_credential, row.device_credential):
            if credential_id in usable:
                credential_ids[credential_id] = None
    return Sender(
        device_id=device_id,
        device=rows[0].device,
        address=rows[0].address,
        targets=tuple(row.target_id for row in rows),
        credentials=tuple(credential_ids),
    )


_ENABLED = (
    sa.select(
        devices.c.id.label("device_id"),
        devices.c.name.label("device"),
        devices.c.address,
        targets.c.id.label("target_id"),
        targets.c.credential_id.label("own_credential"),
        devices.c.credential_id.label("device_credential"),
    )
    .select_from(targets.join(devices, targets.c.device_id == devices.c.id))
    .where(targets.c.enabled, devices.c.enabled)
    .order_by(devices.c.id, targets.c.id)
)
