"""The limit of a token to one site, for functions that select devices and targets."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from poller import errors
from poller.db.inventory import devices
from poller.db.inventory.devices import Device
from poller.domain.access.actor import Actor
from poller.domain.inventory.target_filter import TargetFilter

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
