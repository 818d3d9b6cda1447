"""Actions on saved filters: list, save, remove."""

from __future__ import annotations

from typing import TYPE_CHECKING

from poller import errors, event_publisher
from poller.db.fleet import saved_filter_rows
from poller.domain.access.actor import Actor
from poller.domain.access.scopes import Scope
from poller.domain.fleet import saved_filter
from poller.domain.fleet.device_sort import DeviceSort
from poller.domain.fleet.saved_filter import SavedFilter
from poller.domain.inventory import target_filter
from poller.service import target_selection

if TYPE_CHECKING:
    from poller.bootstrap import Services


def listing(services: Services, actor: Actor, *, everyone: bool = False) -> list[SavedFilter]:
    """Return the actor's own filters and shared ones, by name. Raises NotAllowed, StoreError."""
    actor.require_every_site()
    if not everyone:
        return saved_filter_rows.visible(services.engine, actor.name)
    actor.require(Scope.ADMIN)
    return saved_filter_rows.every(services.engine)


def save(
    services: Services,
    actor: Actor,
    name: str,
    where: str,
    sort: DeviceSort = DeviceSort.NAME,
    *,
    shared: bool = False,
) -> SavedFilter:
    """Save a filter under a name; an own one of that name is replaced.

    To share one needs the scope `operate`. Raises InvalidInput, which names the field, UnknownName
    for a site or collector that does not exist, NotAllowed, StoreError.
    """
    actor.require_every_site()
    if shared:
        actor.require(Scope.OPERATE)
    checked = saved_filter.checked(SavedFilter(name, actor.name, where, sort, shared))
    target_selection.refuse_unknown_names(services, target_filter.parse(checked.where))
    saved_filter_rows.save(services.engine, checked, actor, event_publisher.now_ms())
    return checked


def remove(services: Services, actor: Actor, name: str, owner: str = "") -> None:
    """Remove an own filter; that of somebody else needs the scope `admin`.

    Raises NotFound, NotAllowed, StoreError.
    """
    actor.require_every_site()
    if owner not in ("", actor.name):
        actor.require(Scope.ADMIN)
    whose = owner or actor.name
    now_ms = event_publisher.now_ms()
    if not saved_filter_rows.remove(services.engine, whose, name, actor, now_ms):
        raise errors.NotFound(f'{whose} has no saved filter "{name[:60]}"', hint="poller filter")
