"""Pages of devices in the order that a reader chose: by name, by site, or the worst first.

Each order stands on something that is sorted already: the index of names, that of names within a
site, or the board's list of targets that are not ok. A request looks at a bounded number of rows; a
page can be short then, and its key says where to go on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from poller.db.inventory.devices import Device
from poller.domain.access.actor import Actor
from poller.domain.fleet.device_sort import DeviceSort, Section, SortKey
from poller.domain.inventory.target_filter import TargetFilter
from poller.service import site_limit, target_selection
from poller.service.fleet import devices_by_site
from poller.service.fleet.unwell_devices import UnwellOrder
from poller.service.inventory import device_actions
from poller.state.board.unwell_targets import UnwellTargets

if TYPE_CHECKING:
    from poller.bootstrap import Services

#: Bounded parts of the fleet that one page looks at, so that a rare match is not an empty page.
_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class SortedPage:
    """Devices in their order. `last` is the key to go on after, None at the end."""

    devices: Sequence[Device]
    last: SortKey | None
    note: str = ""  # why the order is another one than was asked for


def page(
    services: Services,
    actor: Actor,
    wanted: TargetFilter,
    sort: DeviceSort,
    limit: int,
    after: SortKey | None = None,
) -> SortedPage:
    """Return the next devices that match and that the actor may see.

    Raises UnknownName for an unknown site or collector, NotAllowed for other sites, StoreError.
    """
    if sort is DeviceSort.NAME:
        return _by_name(services, actor, wanted, limit, after)
    limited = site_limit.limited(actor, wanted)
    target_selection.refuse_unknown_names(services, limited)
    if sort is DeviceSort.SITE:
        return SortedPage(*devices_by_site.page(services, limited, limit, after))
    if not UnwellTargets(services.board).is_sound():
        found = _by_name(services, actor, wanted, limit, after)
        return replace(found, note="Sorted by name: the board is being put in order just now.")
    order = UnwellOrder(services, limited, failing_only=sort is DeviceSort.WORST)
    ids, last = order.page(limit, after)
    return SortedPage(devices_by_site.rows(services, ids), last)


def _by_name(
    services: Services, actor: Actor, wanted: TargetFilter, limit: int, after: SortKey | None
) -> SortedPage:
    found: list[Device] = []
    last: str | None = after.text if after and after.section == Section.REST else ""
    for _ in range(_ROUNDS):
        part = device_actions.page(services, actor, wanted, limit - len(found), last or "")
        found += part.devices
        last = part.last
        if last is None or len(found) >= limit:
            break
    return SortedPage(found, None if last is None else SortKey(Section.REST, 0, last))
