"""Changes of many devices: edit, remove, add a target. Each is planned first, then carried out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from poller import errors
from poller.db import engine as sql
from poller.db.inventory import bulk_edits, lookup
from poller.db.inventory.filter_conditions import SelectedDevice
from poller.db.inventory.inventory_feed import Author
from poller.domain.inventory import target_filter
from poller.domain.inventory.tag_change import TagChange
from poller.domain.inventory.target_filter import TargetFilter
from poller.service import site_limit
from poller.service.inventory import bulk_plan, collector_checks, device_actions, new_sites
from poller.service.inventory.bulk_plan import BulkDone, BulkPlan

if TYPE_CHECKING:
    from poller.bootstrap import Services

#: Fields that differ from device to device.
ONE_ONLY = ("name", "address")


def plan_edit(
    services: Services,
    author: Author,
    wanted: TargetFilter,
    fields: Mapping[str, Any],
    tags: TagChange | None = None,
) -> BulkPlan:
    """Plan a change of all devices that match. Raises InvalidInput, NotFound, NotAllowed."""
    device_actions.refuse_nothing("device", fields, tags)
    for name in ONE_ONLY:
        if fields.get(name) is not None:
            raise errors.InvalidInput(
                f"{name} is for one device, not for all that match a filter",
                hint="edit that device by its name",
            )
    change = device_actions.check_many(services, author, fields)
    found = bulk_plan.matching_devices(services, author.actor, wanted)
    created = new_sites.missing(services.engine, [change.site])
    ids = [device.id for device in found]
    subject = target_filter.text(wanted)

    def carry_out() -> BulkDone:
        changed = bulk_edits.edit_devices(services.engine, ids, change, tags, author, subject)
        return BulkDone(len(ids), changed)

    return BulkPlan(_names(found), carry_out, ids, created)


def plan_removal(services: Services, author: Author, wanted: TargetFilter) -> BulkPlan:
    """Plan the removal of all devices that match. Raises NotFound, NotAllowed."""
    found = bulk_plan.matching_devices(services, author.actor, wanted)
    return _removal(services, author, found, target_filter.text(wanted))


def plan_removal_of(services: Services, author: Author, names: Sequence[str]) -> BulkPlan:
    """Plan the removal of devices by name. Raises NotFound for the first unknown one."""
    if author.actor is not None and author.actor.site is not None:
        for name in names:
            site_limit.visible_device(services, author.actor, name)
    with sql.reading(services.engine) as conn:
        found = lookup.named_devices(conn, names)
    return _removal(services, author, found, "")


def _removal(
    services: Services, author: Author, found: Sequence[SelectedDevice], subject: str
) -> BulkPlan:
    ids = [device.id for device in found]

    def carry_out() -> BulkDone:
        removed = bulk_edits.remove_devices(services.engine, ids, author, subject)
        return BulkDone(len(ids), len(ids), targets_removed=removed)

    return BulkPlan(_names(found), carry_out)


def plan_targets(
    services: Services, author: Author, wanted: TargetFilter, fields: Mapping[str, Any]
) -> BulkPlan:
    """Plan a new target for all devices that match and have none of its name.

    Raises InvalidInput, NotFound, NotAllowed.
    """
    own = fields.get("credential")
    site_limit.require_credential(services, author, own)
    found = bulk_plan.matching_devices(services, author.actor, wanted)
    ids = [device.id for device in found]
    used = [own] if own else list(bulk_edits.credentials_of(services.engine, ids))
    draft, notes = collector_checks.new_target(services, fields, used)
    subject = target_filter.text(wanted)

    def carry_out() -> BulkDone:
        added = bulk_edits.add_targets(services.engine, ids, draft, author, subject)
        return BulkDone(len(ids), added)

    return BulkPlan(_names(found), carry_out, notes=notes)


def _names(found: Sequence[SelectedDevice]) -> list[str]:
    return [device.name for device in found]
