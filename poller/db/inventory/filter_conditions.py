"""A filter as SQL: conditions on devices and targets, and the rows that match them.

Addresses are compared here, in Python: they are text, and may be host names. States and error codes
are not in SQL (see service/target_selection.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from poller.db import engine as sql
from poller.db.in_list import in_list
from poller.db.tables import devices, sites, targets
from poller.domain.inventory.target_filter import AddressMatch, TargetFilter

_ROWS_PER_FETCH = 5_000


class SelectedDevice(NamedTuple):
    id: int
    name: str


class SelectedTarget(NamedTuple):
    id: int
    device_id: int
    device: str
    name: str
    collector: str
    enabled: bool  # the target and its device


def matching_devices(engine: Engine, wanted: TargetFilter) -> list[SelectedDevice]:
    """Return the devices that match, by name. The keys of targets are left out of account."""
    query = sa.select(devices.c.id, devices.c.name, devices.c.address).order_by(devices.c.name)
    with sql.reading(engine) as conn:
        rows = _matching(conn, query.select_from(_WITH_SITE), wanted)
        return [SelectedDevice(row.id, row.name) for row in rows]


def matching_targets(engine: Engine, wanted: TargetFilter) -> list[SelectedTarget]:
    """Return the targets that match, by device and name, without regard to state and code."""
    query = _TARGETS
    if wanted.collectors:
        query = query.where(in_list(targets.c.collector, wanted.collectors))
    with sql.reading(engine) as conn:
        return [_target(row) for row in _matching(conn, query, wanted)]


def device_conditions(conn: Connection, wanted: TargetFilter) -> list[sa.ColumnElement[bool]]:
    """Return conditions on `devices` and `sites` for every key of a device but its address."""
    conditions: list[sa.ColumnElement[bool]] = []
    if wanted.sites:
        conditions.append(sa.func.coalesce(sites.c.name, "").in_(wanted.sites))
    for tag in wanted.tags:
        elements = _tag_elements(conn)
        conditions.append(sa.exists().select_from(elements).where(elements.c.value == tag))
    if wanted.names:
        conditions.append(sa.or_(*(_name_condition(conn, name) for name in wanted.names)))
    return conditions


def _matching(
    conn: Connection, query: sa.Select[Any], wanted: TargetFilter
) -> Iterator[sa.Row[*tuple[Any, ...]]]:
    """Yield the rows of a query on devices that match the keys of devices."""
    limited = query.where(*device_conditions(conn, wanted))
    rows = conn.execution_options(yield_per=_ROWS_PER_FETCH).execute(limited)
    if not wanted.addresses:
        yield from rows
        return

    match = AddressMatch(wanted.addresses)
    for row in rows:
        if match.accepts(row.address):
            yield row


def _tag_elements(conn: Connection) -> Any:
    """Return the tags of a device as rows."""
    if conn.dialect.name == "postgresql":
        elements = sa.func.jsonb_array_elements_text(devices.c.tags)
    else:
        elements = sa.func.json_each(devices.c.tags)
    return elements.table_valued("value")


def _name_condition(conn: Connection, pattern: str) -> sa.ColumnElement[bool]:
    """Return the condition that a device's name fits a pattern with * and ?, exact in case."""
    if not set(pattern) & set("*?"):
        return devices.c.name == pattern
    if conn.dialect.name == "postgresql":
        escaped = pattern.replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_")
        return devices.c.name.like(escaped.replace("*", "%").replace("?", "_"), escape="\\")
    return devices.c.name.op("GLOB")(pattern.replace("[", "[[]"))


def _target(row: Any) -> SelectedTarget:
    return SelectedTarget(
        id=row.id,
        device_id=row.device_id,
        device=row.device,
        name=row.name,
        collector=row.collector,
        enabled=bool(row.enabled),
    )


def collectors_in_use(engine: Engine) -> list[str]:
    query = sa.select(targets.c.collector).distinct()
    with sql.single_read(engine) as conn:
        return list(conn.execute(query).scalars())


_WITH_SITE = devices.outerjoin(sites, devices.c.site_id == sites.c.id)

_TARGETS = (
    sa.select(
        targets.c.id,
        devices.c.id.label("device_id"),
        devices.c.name.label("device"),
        devices.c.address,
        targets.c.name,
        targets.c.collector,
        sa.and_(targets.c.enabled, devices.c.enabled).label("enabled"),
    )
    .select_from(targets.join(_WITH_SITE, targets.c.device_id == devices.c.id))
    .order_by(devices.c.name, targets.c.name)
)
