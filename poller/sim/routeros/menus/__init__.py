"""The menus of the simulated routers, one file per group.

To add a menu, add a `Table` to the TABLES of its group. Tables for different versions may have the
same path: the first whose condition holds for the router is used.
"""

from __future__ import annotations

from collections.abc import Mapping

from poller.sim.hardware_model import Chassis
from poller.sim.routeros.menu_tables import Table
from poller.sim.routeros.menus import (
    ethernet_menus,
    firewall_menus,
    interface_menus,
    ip_menus,
    lte_menus,
    queue_menus,
    routing_menus,
    service_menus,
    system_menus,
    tunnel_menus,
    wireless_menus,
)

_GROUPS = (
    system_menus,
    interface_menus,
    ethernet_menus,
    tunnel_menus,
    ip_menus,
    firewall_menus,
    routing_menus,
    queue_menus,
    wireless_menus,
    lte_menus,
    service_menus,
)


def _by_path() -> dict[str, list[Table]]:
    found: dict[str, list[Table]] = {}
    for group in _GROUPS:
        for table in group.TABLES:
            found.setdefault(table.path, []).append(table)
    return found


TABLES: Mapping[str, list[Table]] = _by_path()


def find(path: str, chassis: Chassis) -> Table | None:
    """Return the menu at a path, or None if a router of this chassis does not have it."""
    return next((table for table in TABLES.get(path, ()) if table.where(chassis)), None)


def has(prefix: str, chassis: Chassis) -> bool:
    """Return whether there is a menu at or below a path."""
    below = prefix.rstrip("/") + "/"
    return any(f"{path}/".startswith(below) and find(path, chassis) for path in TABLES)
