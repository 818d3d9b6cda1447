"""The limit of a token to one site, for functions that select devices and targets."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from poller import errors
from poller.db.inventory import credential_rows, devices, filter_conditions, targets
from poller.db.inventory.devices import Device
from poller.db.inventory.inventory_feed import Author
from poller.db.inventory.targets import Target
from poller.domain.access.actor import Actor
from poller.domain.inventory.target_filter import TargetFilter
from poller.domain.record.event_kinds import VisibleIds

if TYPE_CHECKING:
    from poller.bootstrap import Services


def limited(actor: Actor | None, wanted: TargetFilter) -> TargetFilter:
    """Return the filter with the actor's site. Raises NotAllowed for a filter of other sites."""
    if actor is None or actor.site is None:
        return wanted
    for site in wanted.sites:
        actor.require_site(site)
    return dataclasses.replace(wanted, sites=(actor.site,))


def visible_device(services: Services, actor: Actor | None, name: str) -> Device:
    """Return a device that the actor may see. Raises NotFound, as for one that does not exist."""
    if actor is None or actor.site is None:
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
    found = targets.by_id(services.engine, target_id)
    if found is None:
        raise errors.NotFound(f"no target has the id {target_id}", hint="poller target list")
    return found


def visible_target(services: Services, actor: Actor | None, target_id: int) -> Target:
    """Return a target that the actor may see. Raises NotFound, as for one that does not exist."""
    found = target_by_id(services, target_id)
    site = actor.site if actor else None
    if site not in (None, found.site):
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


def require_site(author: Author, site: str) -> None:
    """Raise NotAllowed if the author of a change is limited to another site."""
    if author.actor is not None:
        author.actor.require_site(site)


def require_parent(services: Services, author: Author, parent: str | None) -> None:
    """Raise NotAllowed for a parent that an author of one site does not see."""
    actor = author.actor
    if not parent or actor is None or actor.site is None:
        return
    try:
        visible_device(services, actor, parent)
    except errors.NotFound as error:
        raise errors.NotAllowed(f"parent: {error.message}") from None


def require_credential(services: Services, author: Author, name: str | None) -> None:
    """Raise NotAllowed for a credential that the author's one site does not use.

    Otherwise a token of one site could send every stored secret to an address of its choice.
    """
    actor = author.actor
    if not name or actor is None or actor.site is None:
        return
    if name not in credential_rows.used_at(services.engine, actor.site):
        raise errors.NotAllowed(
            f'credential "{name}" is not used at site "{actor.site}"',
            hint="use a token that is not limited to a site for its first use there",
        )
