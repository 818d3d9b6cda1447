"""The limit of a token to one site, for functions that select devices and targets."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from poller import errors
from poller.db.inventory import devices, filter_conditions, targets
from poller.db.inventory.devices import Device
from poller.db.inventory.targets import Target
from poller.domain.access.actor import Actor
from poller.domain.inventory.target_filter import TargetFilter
from poller.domain.record.event_kinds import VisibleIds

if TYPE_CHECKING:
    from poller.bootstrap import Services


def limited(actor: Actor, wanted: TargetFilter) -> TargetFilter:
    """Return the filter with the actor's site. Raises NotAllowed for a filter of other sites."""
    if actor.site is None:
        return wanted
    for site in wanted.sites:
        actor.require_site(site)
    return dataclasses.replace(wanted, sites=(actor.site,))


def visible_device(services: Services, actor: Actor, name: str) -> Device:
    """Return a device that the actor may see. Raises NotFound, as for one that does not exist."""
    if actor.site is None:
        return devices.show(services.engine, name)
    try:
        found = devices.show(services.engine, name)
    except errors.NotFound:
        found = None
    if found is None or found.site != actor.site:
        # No hint: the nearest name may be of another site.
        raise errors.NotFound(f'no device named "{name}" in site "{actor.site}"')
    return found


def target_by_id(services: Services, target_id: int) -> Target:
    """Return a target. Raises NotFound."""
    found = targets.listing(services.engine, ids=[target_id], limit=1)
    if not found:
        raise errors.NotFound(f"no target has the id {target_id}", hint="poller target list")
    return found[0]


def visible_target(services: Services, actor: Actor, target_id: int) -> Target:
    """Return a target that the actor may see. Raises NotFound, as for one that does not exist."""
    found = target_by_id(services, target_id)
    if actor.site not in (None, devices.show(services.engine, found.device).site):
        raise errors.NotFound(f"no target has the id {target_id}", hint="poller target list")
    return found


def visible_ids(services: Services, actor: Actor) -> VisibleIds | None:
    """Return the devices and targets that the actor may see; None for all."""
    if actor.site is None:
        return None
    wanted = TargetFilter(sites=(actor.site,))
    found = filter_conditions.matching_devices(services.engine, wanted)
    of_devices = filter_conditions.matching_targets(services.engine, wanted)
    device_ids = frozenset(device.id for device in found)
    return VisibleIds(device_ids, frozenset(target.id for target in of_devices))
