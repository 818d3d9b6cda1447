"""Devices in the order of their sites, and by name within a site.

Every site has its part of an index that is sorted by name. Small sites are read together, a large
one by pages of its own, so a page costs the same whatever the number and the size of sites.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from poller.db.fleet import fleet_places
from poller.db.inventory import devices
from poller.db.inventory.devices import Device
from poller.domain.fleet.device_sort import SortKey, site_key
from poller.domain.inventory.key_position import Position
from poller.domain.inventory.target_filter import TargetFilter
from poller.service.fleet import fleet_picture
from poller.service.selection import target_page

if TYPE_CHECKING:
    from poller.bootstrap import Services

#: Devices, and sites, that are read and sorted together.
_TOGETHER = target_page.LARGEST_PAGE
_MOST_SITES = 200
#: Bounded reads of one request.
_ROUNDS = target_page.SCAN_LIMIT // _TOGETHER


def page(
    services: Services, wanted: TargetFilter, limit: int, after: SortKey | None
) -> tuple[list[Device], SortKey | None]:
    """Return the next devices that match, and the key to go on after; None at the end."""
    # The sizes may be some seconds old; a site without one is read alone.
    sizes = {site.name: site.devices for site in fleet_picture.picture(services).sites}
    names = wanted.sites or [*fleet_places.site_names(services.engine), ""]
    rest = _sites_from(names, after)
    begin = after.name if after and rest and rest[0] == after.text else ""
    found: list[Device] = []
    for _ in range(_ROUNDS):
        if not rest:
            return found, None
        batch = rest[:1] if begin else _batch(rest, sizes)
        part, following = _read(services, wanted, batch, begin)
        found += part
        if len(found) > limit:
            return found[:limit], SortKey(0, 0, found[limit - 1].site, found[limit - 1].name)
        begin = following
        if not following:
            rest = rest[len(batch) :]
    return found, SortKey(0, 0, rest[0], begin) if rest else None


def rows(services: Services, ids: Sequence[int]) -> list[Device]:
    """Return these devices, in the order of the ids."""
    by_id = {row.id: row for row in devices.listing(services.engine, ids=ids, limit=None)}
    return [by_id[key] for key in ids if key in by_id]


def _sites_from(names: Sequence[str], after: SortKey | None) -> list[str]:
    """The sites in their order, from that of the key on."""
    ordered = sorted(set(names), key=site_key)
    if after is None:
        return ordered
    return [name for name in ordered if site_key(name) >= site_key(after.text)]


def _batch(names: Sequence[str], sizes: Mapping[str, int]) -> list[str]:
    """The first sites that are small enough to be read together; at least one."""
    batch = [names[0]]
    total = sizes.get(names[0], _TOGETHER)
    for name in names[1:_MOST_SITES]:
        total += sizes.get(name, 0 if name == "" else _TOGETHER)
        if total > _TOGETHER:
            break
        batch.append(name)
    return batch


def _read(
    services: Services, wanted: TargetFilter, batch: Sequence[str], begin: str
) -> tuple[list[Device], str]:
    """The devices of some sites in order, and the name to go on after within the only one."""
    limited = replace(wanted, sites=tuple(batch))
    after = Position(begin) if begin else None
    found = target_page.device_page(services, limited, after, _TOGETHER)
    listed = rows(services, [device.id for device in found.devices])
    listed.sort(key=lambda device: (site_key(device.site), device.name))
    return listed, found.next.device if found.next and len(batch) == 1 else ""
