"""Targets and devices in the order of keys: of some candidates from a position on, or of devices.

Counts of what a filter selects are here, too, where an index makes them cheap.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from poller.db.in_list import in_list
from poller.db.inventory import filter_conditions, key_order
from poller.db.inventory.filter_conditions import SelectedDevice, SelectedTarget
from poller.db.tables import devices, sites, targets
from poller.domain.inventory.key_position import Position
from poller.domain.inventory.target_filter import TargetFilter, TargetState


class Candidates(NamedTuple):
    """Devices or targets, by id, among which all are that a filter selects."""

    column: sa.ColumnElement[Any]  # devices.c.id or targets.c.id
    ids: Sequence[int]

    @property
    def condition(self) -> sa.ColumnElement[bool]:
        return in_list(self.column, self.ids)


def site_ids(conn: Connection, wanted: TargetFilter) -> list[int | None]:
    """Return the sites of a filter; None stands for devices without a site."""
    query = sa.select(sites.c.id).where(in_list(sites.c.name, wanted.sites))
    found: list[int | None] = list(conn.execute(query).scalars())
    return [*found, None] if "" in wanted.sites else found


def targets_among(
    conn: Connection,
    wanted: TargetFilter,
    candidates: Candidates,
    after: Position | None,
    limit: int,
) -> list[SelectedTarget]:
    """Return the next candidates that match, without regard to board states and addresses."""
    query = (
        filter_conditions.TARGETS.where(candidates.condition, *_conditions(conn, wanted))
        .where(*key_order.after_target(after))
        .order_by(*key_order.KEY)
        .limit(limit)
    )
    return [filter_conditions.selected_target(row) for row in conn.execute(query)]


def devices_among(
    conn: Connection,
    wanted: TargetFilter,
    candidates: Candidates,
    after: Position | None,
    limit: int,
) -> list[SelectedDevice]:
    """Return the next candidates that match, without regard to addresses and keys of targets."""
    query = (
        sa.select(devices.c.id, devices.c.name)
        .select_from(filter_conditions.WITH_SITE)
        .where(candidates.condition, *filter_conditions.device_conditions(conn, wanted))
        .where(*key_order.after_device(after))
        .order_by(devices.c.name)
        .limit(limit)
    )
    return [SelectedDevice(row.id, row.name) for row in conn.execute(query)]


def targets_of(
    conn: Connection, wanted: TargetFilter, device_ids: Sequence[int]
) -> list[SelectedTarget]:
    """Return the targets of devices that match by their own keys, in the order of keys."""
    query = filter_conditions.TARGETS.where(
        in_list(targets.c.device_id, device_ids), *_target_conditions(wanted)
    )
    found = [filter_conditions.selected_target(row) for row in conn.execute(query)]
    return sorted(found, key=lambda target: (target.device, target.name))


def count_targets(conn: Connection, wanted: TargetFilter, candidates: Candidates | None) -> int:
    """Count the targets that match, without regard to board states and addresses."""
    query = (
        sa.select(sa.func.count())
        .select_from(filter_conditions.TARGETS_WITH_SITE)
        .where(*_conditions(conn, wanted))
    )
    if candidates is not None:
        query = query.where(candidates.condition)
    return int(conn.execute(query).scalar_one())


def count_devices(conn: Connection, wanted: TargetFilter, candidates: Candidates | None) -> int:
    """Count the devices that match, without regard to addresses and keys of targets."""
    query = (
        sa.select(sa.func.count())
        .select_from(filter_conditions.WITH_SITE)
        .where(*filter_conditions.device_conditions(conn, wanted))
    )
    if candidates is not None:
        query = query.where(candidates.condition)
    return int(conn.execute(query).scalar_one())


def _conditions(conn: Connection, wanted: TargetFilter) -> list[sa.ColumnElement[bool]]:
    return [*filter_conditions.device_conditions(conn, wanted), *_target_conditions(wanted)]


def _target_conditions(wanted: TargetFilter) -> list[sa.ColumnElement[bool]]:
    """Return the conditions on targets: their keys, and whether they are enabled."""
    conditions = filter_conditions.target_conditions(wanted)
    is_enabled = sa.and_(targets.c.enabled, devices.c.enabled)
    if wanted.states == (TargetState.DISABLED,):
        conditions.append(sa.not_(is_enabled))
    elif wanted.needs_status and TargetState.DISABLED not in wanted.states:
        conditions.append(is_enabled)
    return conditions
