"""Windows of devices in the order of their names: a walk through the fleet in bounded steps.

A window looks at a given number of devices, however few of them match. The sites of a filter and
the beginning of names choose the part of an index that is walked; the other keys are checked there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from poller.db.inventory import filter_conditions, key_order
from poller.db.inventory.filter_conditions import literal_prefix
from poller.db.tables import devices
from poller.domain.inventory.key_position import Position
from poller.domain.inventory.target_filter import AddressMatch, TargetFilter


class WalkedDevice(NamedTuple):
    id: int
    name: str
    enabled: bool


class DeviceWindow(NamedTuple):
    """The devices of a window that match, in the order of names."""

    devices: list[WalkedDevice]
    scanned: int
    end: Position | None  # None: the window is the last one


def read(
    conn: Connection,
    wanted: TargetFilter,
    site_ids: Sequence[int | None],
    after: Position | None,
    size: int,
) -> DeviceWindow:
    """Look at the next `size` devices. `site_ids` are the sites of the filter; none is all."""
    rows = conn.execute(_statement(conn, wanted, site_ids, after, size)).all()
    is_last = not rows or rows[-1].number < size
    match = AddressMatch(wanted.addresses) if wanted.addresses else None
    found = [
        WalkedDevice(row.id, row.name, bool(row.enabled))
        for row in rows
        if row.fits and (match is None or match.accepts(row.address))
    ]
    scanned = rows[-1].number if rows else 0
    return DeviceWindow(found, scanned, None if is_last else Position(rows[-1].name))


def _statement(
    conn: Connection,
    wanted: TargetFilter,
    site_ids: Sequence[int | None],
    after: Position | None,
    size: int,
) -> sa.Select[Any]:
    """Select the devices of a window that fit, and its last one in any case."""
    walked = _walk(conn, wanted, site_ids, after, size).subquery("walked")
    number = sa.func.row_number().over(order_by=walked.c.name).label("number")
    length = sa.func.count().over().label("length")
    numbered = sa.select(walked, number, length).subquery("numbered")
    is_kept = sa.or_(numbered.c.fits, numbered.c.number == numbered.c.length)
    return sa.select(numbered).where(is_kept).order_by(numbered.c.name)


def _walk(
    conn: Connection,
    wanted: TargetFilter,
    site_ids: Sequence[int | None],
    after: Position | None,
    size: int,
) -> sa.Select[Any]:
    """Select the next devices of one index, each with the answer whether it fits."""
    query = _DEVICES.add_columns(_fits(conn, wanted)).where(
        *_name_range(wanted), *key_order.after_device(after)
    )
    if not site_ids:
        return query.order_by(devices.c.name).limit(size)

    # Each site has its part of the index. One walk through several parts would need a sort of all.
    parts = [
        sa.select(query.where(_is_site(site_id)).order_by(devices.c.name).limit(size).subquery())
        for site_id in site_ids
    ]
    together = sa.union_all(*parts).subquery("parts")
    return sa.select(together).order_by(together.c.name).limit(size)


def _is_site(site_id: int | None) -> sa.ColumnElement[bool]:
    return devices.c.site_id.is_(None) if site_id is None else devices.c.site_id == site_id


def _fits(conn: Connection, wanted: TargetFilter) -> sa.ColumnElement[bool]:
    conditions = [
        *filter_conditions.tag_conditions(conn, wanted),
        *filter_conditions.name_conditions(conn, wanted),
        *filter_conditions.address_conditions(wanted),
    ]
    fits = sa.and_(*conditions) if conditions else sa.true()
    return fits.label("fits")


def _name_range(wanted: TargetFilter) -> list[sa.ColumnElement[bool]]:
    """Return the range of names in which all that fit are, by the text before the wildcards."""
    if not wanted.names:
        return []
    prefixes = [literal_prefix(name) for name in wanted.names]
    return key_order.prefix_range(devices.c.name, min(prefixes), max(prefixes))


_DEVICES = sa.select(devices.c.id, devices.c.name, devices.c.address, devices.c.enabled)
