"""Every menu of the simulated routers, a file for each group. To add a menu, add a `Table` to its group's TABLES.

Two tables may have the same path when versions differ: the first that the router has is the one.
"""

from __future__ import annotations

from collections.abc import Mapping

from poller.sim.parts import Chassis
from poller.sim.routeros.menus import (
    ethernet,
    firewall,
    interfaces,
    ip,
    lte,
    queues,
    routing,
    services,
    system,
    tunnels,
    wireless,
)
from poller.sim.routeros.tables import Table

_GROUPS = (system, interfaces, ethernet, tunnels, ip, firewall, routing, queues, wireless, lte, services)


def _by_path() -> dict[str, list[Table]]:
    found: dict[str, list[Table]] = {}
    for group in _GROUPS:
        for table in group.TABLES:
            found.setdefault(table.path, []).append(table)
    return found


TABLES: Mapping[str, list[Table]] = _by_path()


def find(path: str, chassis: Chassis) -> Table | None:
    """The menu at a path, if a router of this chassis has it."""
    return next((table for table in TABLES.get(path, ()) if table.where(chassis)), None)


def has(prefix: str, chassis: Chassis) -> bool:
    """Is there a menu at or below a path?"""
    below = prefix.rstrip("/") + "/"
    return any(f"{path}/".startswith(below) and find(path, chassis) for path in TABLES)
