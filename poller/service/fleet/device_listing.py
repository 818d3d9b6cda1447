"""One page of the devices that a filter selects, each with the state of its targets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from poller import errors
from poller.db.fleet import fleet_places, run_slots
from poller.db.inventory.devices import Device
from poller.domain.access.actor import Actor
from poller.domain.fleet import day_slots, device_summary
from poller.domain.fleet.day_slots import Slot
from poller.domain.fleet.device_sort import DeviceSort, SortKey
from poller.domain.fleet.device_summary import DeviceSummary
from poller.domain.inventory.target_filter import TargetFilter
from poller.domain.why.target_health import TargetHealth
from poller.service import scheduler_health, site_limit
from poller.service.fleet import sorted_devices
from poller.service.fleet.sorted_devices import SortedPage
from poller.service.inventory import device_actions
from poller.service.selection import match_count
from poller.service.selection.match_count import Count

if TYPE_CHECKING:
    from poller.bootstrap import Services

#: Devices of one page at most; there is no page of all.
PAGE_SIZES = (50, 100, 250)


@dataclass(frozen=True, slots=True)
class ListedDevice:
    """A device, its line, and the collectors and intervals of its targets."""

    device: Device
    summary: DeviceSummary
    collectors: Sequence[str] = ()
    intervals_ms: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class DeviceList:
    """One page. `last` is the key to go on after, None at the end; `now_ms` is the cluster's."""

    devices: Sequence[ListedDevice]
    last: SortKey | None
    now_ms: int
    board_error: str = ""  # why states are not known; "" if they are
    note: str = ""  # why the order is another one than was asked for


def page(
    services: Services,
    actor: Actor,
    wanted: TargetFilter,
    limit: int,
    after: SortKey | None = None,
    sort: DeviceSort = DeviceSort.NAME,
) -> DeviceList:
    """Return the next devices that match. Raises UnknownName, NotAllowed, StoreError.

    An error of the board is in the page, unless the filter or the order asks for states.
    """
    found = sorted_devices.page(services, actor, wanted, sort, limit, after)
    try:
        return _with_targets(services, found)
    except errors.StoreError as error:
        blind = [ListedDevice(device, DeviceSummary("unknown")) for device in found.devices]
        return DeviceList(blind, found.last, 0, str(error))


def every(
    services: Services,
    actor: Actor,
    wanted: TargetFilter,
    sort: DeviceSort = DeviceSort.NAME,
) -> Iterator[DeviceList]:
    """Yield all devices that match, page by page, for a file that is streamed."""
    part = page(services, actor, wanted, PAGE_SIZES[-1], None, sort)
    yield part
    while part.last is not None:
        part = page(services, actor, wanted, PAGE_SIZES[-1], part.last, sort)
        yield part


def count(services: Services, actor: Actor, wanted: TargetFilter) -> Count:
    """Count the devices that match; a lower bound unless it is exact."""
    return match_count.count_devices(services, site_limit.limited(actor, wanted))


def strips(
    services: Services, actor: Actor, names: Sequence[str], now_ms: int
) -> dict[str, list[Slot]]:
    """Return the last 24 hours of some devices. Raises StoreError."""
    wanted = TargetFilter(names=tuple(names))
    found = device_actions.page(services, actor, wanted, max(1, len(names)))
    ids = {device.id: device.name for device in found.devices}
    since_ms = day_slots.first_slot(now_ms) * day_slots.SLOT_MS
    counted = run_slots.of_devices(services.engine, list(ids), since_ms)
    return {name: day_slots.slots(counted.get(key, ()), now_ms) for key, name in ids.items()}


def _with_targets(services: Services, found: SortedPage) -> DeviceList:
    now_ms = services.board.now_ms()
    ids = fleet_places.targets_of_devices(services.engine, [each.id for each in found.devices])
    healths = scheduler_health.healths(services, ids)
    by_device: dict[int, list[TargetHealth]] = {}
    for health in healths:
        by_device.setdefault(health.row.device_id, []).append(health)
    listed = []
    for device in found.devices:
        own = by_device.get(device.id, [])
        listed.append(
            ListedDevice(
                device,
                device_summary.summarise(own),
                collectors=sorted({each.row.collector for each in own}),
                intervals_ms=sorted({each.row.interval_ms for each in own}),
            )
        )
    return DeviceList(listed, found.last, now_ms, note=found.note)
