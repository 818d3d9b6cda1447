"""Dead letters in groups: by cause, or by another thing that they have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller.db import engine as sql
from poller.db.record import dead_letter_rows
from poller.db.record.dead_letter_rows import Wanted
from poller.db.tables import dead_letters, devices, targets
from poller.domain.failures.dead_letter import GroupBy


@dataclass(frozen=True, slots=True)
class Group:
    """Letters that have something in common. A field that they do not share is empty; `message` is
    then that of one of them, and `texts` says how many different ones there are.
    """

    reason: str
    error_code: str
    collector: str
    site: str
    device: str
    message: str
    texts: int
    letters: int
    devices: int
    sites: int
    first_ms: int  # first failure
    last_ms: int
    oldest_ms: int  # parked first
    newest_ms: int  # parked last
    arrived: int  # parked since the instant that was asked for


def groups(
    engine: Engine,
    wanted: Wanted,
    by: GroupBy = GroupBy.CAUSE,
    since_ms: int = 0,
    limit: int | None = None,
) -> list[Group]:
    """Return groups of letters, the largest first; `arrived` counts from `since_ms` on."""
    keys = [_COLUMNS[name] for name in _KEYS[by]]
    largest_first = _summed(wanted, since_ms, _KEYS[by]).group_by(*keys)
    query = largest_first.order_by(sa.desc("letters"), *keys).limit(limit)
    with sql.single_read(engine) as conn:
        return [Group(**row._mapping) for row in conn.execute(query)]


def total(engine: Engine, wanted: Wanted, since_ms: int = 0) -> Group | None:
    """Return all letters as one group; None if there is none."""
    with sql.single_read(engine) as conn:
        row = conn.execute(_summed(wanted, since_ms, ())).one()
    return Group(**row._mapping) if row.letters else None


def _summed(wanted: Wanted, since_ms: int, shared: Sequence[str]) -> sa.Select[Any]:
    fields: list[Any] = []
    for name, column in _COLUMNS.items():
        other = sa.func.min(column) if name == "message" else sa.literal("")
        fields.append((column if name in shared else other).label(name))
    query = sa.select(*fields, sa.func.count().label("letters"), *_numbers(since_ms))
    joined = query.select_from(dead_letter_rows.JOINED)
    return joined.where(*dead_letter_rows.conditions(wanted))


def _numbers(since_ms: int) -> list[Any]:
    arrived = sa.case((dead_letters.c.parked_ms >= since_ms, 1), else_=0)
    return [
        sa.func.count(dead_letters.c.message.distinct()).label("texts"),
        sa.func.count(targets.c.device_id.distinct()).label("devices"),
        sa.func.count(dead_letter_rows.site_name.distinct()).label("sites"),
        sa.func.min(dead_letters.c.first_ms).label("first_ms"),
        sa.func.max(dead_letters.c.last_ms).label("last_ms"),
        sa.func.min(dead_letters.c.parked_ms).label("oldest_ms"),
        sa.func.max(dead_letters.c.parked_ms).label("newest_ms"),
        sa.func.sum(arrived).label("arrived"),
    ]


_COLUMNS: dict[str, sa.ColumnElement[str]] = {
    "reason": dead_letters.c.reason,
    "error_code": dead_letters.c.error_code,
    "collector": targets.c.collector,
    "message": dead_letters.c.message,
    "site": dead_letter_rows.site_name,
    "device": devices.c.name,
}
_CAUSE = ("reason", "error_code", "collector")
_KEYS = {
    GroupBy.CAUSE: _CAUSE,
    GroupBy.TEXT: (*_CAUSE, "message"),
    GroupBy.COLLECTOR: ("collector",),
    GroupBy.SITE: ("site",),
    GroupBy.DEVICE: ("device",),
}
