"""One page of the targets or devices that a filter selects, at a cost that is bounded.

Lists of the API, the pages and `scheduler/health` stand on `target_page` and `device_page`. Both go
through the fleet in the order of keys (domain/inventory/key_position.py), so that a reader who
follows `next` sees each row exactly once, also while others are added and removed.

Two ways lead to a page. A key with an index that selects few rows (exact names, states other than
ok, codes, IPv4 networks, collectors, tags on PostgreSQL) gives candidates, and the page is read
from them. Otherwise windows of the fleet are looked at, and the rows of a window that match. A
request looks at `SCAN_LIMIT` devices at most: the page can then be shorter than the limit, or
empty, though more rows match; `next` says where to go on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from poller.db import engine as sql
from poller.db.inventory.filter_conditions import SelectedDevice, SelectedTarget
from poller.domain.inventory.key_position import Position
from poller.domain.inventory.target_filter import ANY, TargetFilter
from poller.service import target_selection
from poller.service.selection.selection_windows import Selection

if TYPE_CHECKING:
    from poller.bootstrap import Services

#: Devices that one request looks at, at most: about a tenth of a second.
SCAN_LIMIT = 20_000
LARGEST_PAGE = 1_000


class TargetPage(NamedTuple):
    """Targets in the order of keys. `next` is None after the last page."""

    targets: list[SelectedTarget]
    next: Position | None
    scanned: int  # devices or candidates that were looked at


class DevicePage(NamedTuple):
    """Devices in the order of names. `next` is None after the last page."""

    devices: list[SelectedDevice]
    next: Position | None
    scanned: int


def target_page(
    services: Services,
    wanted: TargetFilter = ANY,
    after: Position | None = None,
    limit: int = 50,
) -> TargetPage:
    """Return the next targets that match. Raises UnknownName for an unknown site or collector,
    StoreError.
    """
    target_selection.refuse_unknown_names(services, wanted)
    found: list[SelectedTarget] = []
    scanned = 0
    with sql.reading(services.engine) as conn:
        for window in Selection(services, conn, wanted).windows(after, limit + 1):
            found += window.targets
            scanned += window.scanned
            if len(found) > limit:
                last = found[limit - 1]
                return TargetPage(found[:limit], Position(last.device, last.name), scanned)
            if window.end is None or scanned >= SCAN_LIMIT:
                return TargetPage(found, window.end, scanned)
    return TargetPage(found, None, scanned)


def device_page(
    services: Services,
    wanted: TargetFilter = ANY,
    after: Position | None = None,
    limit: int = 50,
) -> DevicePage:
    """Return the next devices that match; one matching target is enough. Raises UnknownName for an
    unknown site or collector, StoreError.
    """
    target_selection.refuse_unknown_names(services, wanted)
    found: dict[int, SelectedDevice] = {}
    scanned = 0
    with sql.reading(services.engine) as conn:
        for window in Selection(services, conn, wanted).device_windows(after, limit + 1):
            found |= {device.id: device for device in window.devices}
            scanned += window.scanned
            if len(found) > limit:
                page = list(found.values())[:limit]
                return DevicePage(page, Position(page[-1].name), scanned)
            if window.end is None or scanned >= SCAN_LIMIT:
                return DevicePage(list(found.values()), window.end, scanned)
    return DevicePage(list(found.values()), None, scanned)
