"""Few devices or targets that an indexed key of a filter selects.

A key that selects more than the limit is no help: most rows then match, and a walk in the order of
keys finds a page of them at once (device_windows.py). All other keys are checked on the candidates.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from poller.db.in_list import in_list
from poller.db.inventory import filter_conditions, key_order
from poller.db.tables import devices, targets
from poller.domain.inventory.target_filter import AddressMatch, TargetFilter


def named_device_ids(conn: Connection, wanted: TargetFilter) -> list[int] | None:
    """Return the devices with these names, if all of them are names and none is a pattern."""
    if not are_exact(wanted.names):
        return None
    query = sa.select(devices.c.id).where(in_list(devices.c.name, wanted.names))
    return list(conn.execute(query).scalars())


def are_exact(names: Sequence[str]) -> bool:
    """Whether there are names, and none of them is a pattern."""
    return bool(names) and not any(filter_conditions.is_pattern(name) for name in names)


def addressed_device_ids(conn: Connection, wanted: TargetFilter, most: int) -> list[int] | None:
    """Return the devices of IPv4 networks. IPv6 addresses have several forms as text."""
    prefixes = [_octet_prefix(pattern) for pattern in wanted.addresses]
    if not prefixes or not all(prefixes):
        return None
    conditions = [
        sa.and_(*key_order.prefix_range(devices.c.address, prefix, prefix)) for prefix in prefixes
    ]
    query = sa.select(devices.c.id, devices.c.address).where(sa.or_(*conditions)).limit(most + 1)
    rows = conn.execute(query).all()
    if len(rows) > most:
        return None
    match = AddressMatch(wanted.addresses)
    return [device_id for device_id, address in rows if match.accepts(address)]


def _octet_prefix(pattern: str) -> str:
    """Return the text that all addresses of an IPv4 network begin with; "" if there is none."""
    try:
        network = ipaddress.IPv4Network(pattern, strict=False)
    except ValueError:
        return ""
    return filter_conditions.octet_prefix(network)


def tagged_device_ids(conn: Connection, wanted: TargetFilter, most: int) -> list[int] | None:
    """Return the devices with all tags. Only PostgreSQL has an index of tags."""
    if not wanted.tags or conn.dialect.name != "postgresql":
        return None
    tagged = filter_conditions.tag_conditions(conn, wanted)
    return _few(conn, sa.select(devices.c.id).where(*tagged), most)


def collected_target_ids(conn: Connection, wanted: TargetFilter, most: int) -> list[int] | None:
    """Return the targets of these collectors."""
    if not wanted.collectors:
        return None
    collected = in_list(targets.c.collector, wanted.collectors)
    few = sa.select(targets.c.id).where(collected).limit(most + 1).subquery()
    number = conn.execute(sa.select(sa.func.count()).select_from(few)).scalar_one()
    if number > most:
        return None
    return list(conn.execute(sa.select(targets.c.id).where(collected)).scalars())


def credentialed_target_ids(conn: Connection, wanted: TargetFilter, most: int) -> list[int] | None:
    """Return the targets that are polled with these credentials."""
    if not wanted.credentials:
        return None
    having = filter_conditions.credential_condition(wanted.credentials)
    return _few(conn, sa.select(targets.c.id).where(having), most)


def disabled_target_ids(conn: Connection, most: int) -> list[int] | None:
    """Return the targets that are disabled, or whose device is."""
    own = sa.select(targets.c.id).where(sa.not_(targets.c.enabled))
    of_device = (
        sa.select(targets.c.id)
        .select_from(devices.join(targets, targets.c.device_id == devices.c.id))
        .where(sa.not_(devices.c.enabled))
    )
    found: set[int] = set()
    for query in (own, of_device):
        few = _few(conn, query, most)
        if few is None:
            return None
        found.update(few)
    return sorted(found)


def of_addresses(
    conn: Connection, wanted: TargetFilter, ids: Sequence[int], column: sa.ColumnElement[Any]
) -> list[int]:
    """Return the candidates whose address fits. `column` is the key of what they are."""
    query = sa.select(column, devices.c.address)
    if column is targets.c.id:
        query = query.join_from(targets, devices, targets.c.device_id == devices.c.id)
    match = AddressMatch(wanted.addresses)
    rows = conn.execute(query.where(in_list(column, ids)))
    return [key for key, address in rows if match.accepts(address)]


def _few(conn: Connection, query: sa.Select[Any], most: int) -> list[int] | None:
    """Return the ids that a query finds, or None if they are more than that."""
    found = list(conn.execute(query.limit(most + 1)).scalars())
    return None if len(found) > most else found
