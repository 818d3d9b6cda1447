"""The devices and targets that a filter selects, from SQL and, for states and codes, from Redis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from poller.db.inventory import filter_conditions, sites
from poller.db.inventory.filter_conditions import SelectedDevice, SelectedTarget
from poller.domain.batched import batched
from poller.domain.inventory.did_you_mean import refuse_unknown
from poller.domain.inventory.target_filter import TargetFilter, TargetState
from poller.domain.record.target_status import Status
from poller.state.board.breakers import Breakers

if TYPE_CHECKING:
    from poller.bootstrap import Services

_PAGE = 1_000


def select_targets(services: Services, wanted: TargetFilter) -> list[SelectedTarget]:
    """Return the targets that match, by device and name.

    Raises NotFound for a site or collector that does not exist, StoreError.
    """
    found = filter_conditions.matching_targets(services.engine, wanted)
    if not found or _names_several(wanted):
        _refuse_unknown_names(services, wanted)
    if wanted.needs_status:
        found = _with_status(services, wanted, found)
    return found


def select_devices(services: Services, wanted: TargetFilter) -> list[SelectedDevice]:
    """Return the devices that match, by name; one matching target is enough.

    Raises NotFound for a site or collector that does not exist, StoreError.
    """
    if wanted.selects_targets:
        of_targets = select_targets(services, wanted)
        names = {target.device_id: target.device for target in of_targets}
        return [SelectedDevice(device_id, name) for device_id, name in names.items()]

    found = filter_conditions.matching_devices(services.engine, wanted)
    if not found or _names_several(wanted):
        _refuse_unknown_names(services, wanted)
    return found


def _with_status(
    services: Services, wanted: TargetFilter, found: Sequence[SelectedTarget]
) -> list[SelectedTarget]:
    """Return the targets whose state and error code match."""
    openings: Mapping[int, object] = {}
    if TargetState.OPEN in wanted.states:
        openings = Breakers(services.board).openings(services.board.now_ms())

    matching = []
    for page in batched(found, _PAGE):
        statuses = services.board.statuses([target.id for target in page])
        for target in page:
            status = statuses.get(target.id, Status())
            states = _states(target, status, is_opened=target.id in openings)
            has_state = not wanted.states or not states.isdisjoint(wanted.states)
            if has_state and (not wanted.codes or status.code in wanted.codes):
                matching.append(target)
    return matching


def _states(target: SelectedTarget, status: Status, *, is_opened: bool) -> set[TargetState]:
    """Return every state of a target. A disabled target has no other."""
    if not target.enabled:
        return {TargetState.DISABLED}

    states = {TargetState(status.state.value)}
    if status.breaker.trips or is_opened:
        states.add(TargetState.OPEN)
    if status.parked_ms:
        states.add(TargetState.PARKED)
    return states


def _names_several(wanted: TargetFilter) -> bool:
    """Whether one name may be unknown although others match."""
    return len(wanted.sites) > 1 or len(wanted.collectors) > 1


def _refuse_unknown_names(services: Services, wanted: TargetFilter) -> None:
    """Raise NotFound for the first site or collector of the filter that does not exist."""
    if wanted.sites:
        names = {"", *(site.name for site in sites.listing(services.engine))}
        for name in wanted.sites:
            refuse_unknown("site", name, names, "poller site list")

    if wanted.collectors:
        in_use = filter_conditions.collectors_in_use(services.engine)
        collectors = {*services.registry.collectors, *in_use}
        for name in wanted.collectors:
            refuse_unknown("collector", name, collectors, "poller collectors")
