"""The order of keys in SQL: devices by name, and within a device its targets by name.

Names are sorted by code point on every database (db/tables.py), as Python does.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from poller.db.tables import devices, targets
from poller.domain.inventory.key_position import Position

KEY = (devices.c.name, targets.c.name)


def after_device(position: Position | None) -> list[sa.ColumnElement[bool]]:
    """Return the conditions on devices behind a position, or the device in its middle."""
    if position is None:
        return []
    name = devices.c.name
    return [name > position.device if position.target is None else name >= position.device]


def after_target(position: Position | None) -> list[sa.ColumnElement[bool]]:
    """Return the conditions on targets, joined with their devices, behind a position."""
    conditions = after_device(position)
    if position is not None and position.target is not None:
        is_later_device = devices.c.name > position.device
        conditions.append(sa.or_(is_later_device, targets.c.name > position.target))
    return conditions


def prefix_range(
    column: sa.ColumnElement[Any], low: str, high: str
) -> list[sa.ColumnElement[bool]]:
    """Return the conditions that a text lies between two prefixes, both included."""
    conditions = [column >= low] if low else []
    behind = first_behind(high)
    if behind:
        conditions.append(column < behind)
    return conditions


def first_behind(prefix: str) -> str:
    """Return the first text behind all texts with a prefix; "" if there is none."""
    for length in range(len(prefix), 0, -1):
        following = ord(prefix[length - 1]) + 1
        if 0xD800 <= following <= 0xDFFF:  # no characters
            following = 0xE000
        if following <= 0x10FFFF:
            return prefix[: length - 1] + chr(following)
    return ""
