"""Changes of many targets: edit and remove. Each is planned first, then carried out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from poller import errors
from poller.db.inventory import bulk_edits
from poller.db.inventory.filter_conditions import SelectedTarget
from poller.db.inventory.inventory_feed import Author
from poller.domain.inventory import target_filter
from poller.domain.inventory.target_filter import TargetFilter
from poller.service import site_limit
from poller.service.inventory import bulk_plan, collector_checks, device_actions, target_actions
from poller.service.inventory.bulk_plan import BulkDone, BulkPlan

if TYPE_CHECKING:
    from poller.bootstrap import Services


def plan_edit(
    services: Services,
    author: Author,
    wanted: TargetFilter,
    fields: Mapping[str, Any],
    options: Mapping[str, Any] | None = None,
) -> BulkPlan:
    """Plan a change of all targets that match. Raises InvalidInput, NotFound, NotAllowed."""
    device_actions.refuse_nothing("target", fields, options)
    if fields.get("name") is not None:
        raise errors.InvalidInput(
            "name is for one target, not for all that match a filter",
            hint="edit that target by its device and name",
        )
    credential = fields.get("credential")
    site_limit.require_credential(services, author, credential)
    found = bulk_plan.matching_targets(services, author.actor, wanted)
    collectors = sorted({target.collector for target in found})
    _refuse_mixed(collectors, options)
    for collector in collectors:
        collector_checks.check_credential(services, credential, collector)

    draft_of = partial(collector_checks.target_changes, services, fields, options)
    ids = [target.id for target in found]
    bulk_edits.check_target_edits(services.engine, ids, draft_of)
    subject = target_filter.text(wanted)

    def carry_out() -> BulkDone:
        changed = bulk_edits.edit_targets(services.engine, ids, draft_of, author, subject)
        return BulkDone(len(ids), changed)

    return BulkPlan(_names(found), carry_out, ids)


def _refuse_mixed(collectors: Sequence[str], options: Mapping[str, Any] | None) -> None:
    """Raise InvalidInput for options of a collector if targets of several collectors match."""
    if options and len(collectors) > 1:
        raise errors.InvalidInput(
            f"an option is of one collector, and targets of {' and '.join(collectors)} match",
            hint=f"add collector:{collectors[0]} to the filter",
        )


def plan_removal(services: Services, author: Author, wanted: TargetFilter) -> BulkPlan:
    """Plan the removal of all targets that match. Raises NotFound, NotAllowed."""
    found = bulk_plan.matching_targets(services, author.actor, wanted)
    ids = [target.id for target in found]
    return _removal(services, author, ids, _names(found), target_filter.text(wanted))


def plan_removal_of(services: Services, author: Author, device: str, name: str) -> BulkPlan:
    """Plan the removal of one target. Raises NotFound."""
    found = target_actions.show(services, author.actor, device, name)
    return _removal(services, author, [found.id], [f"{device}/{name}"], "")


def _removal(
    services: Services, author: Author, ids: Sequence[int], names: Sequence[str], subject: str
) -> BulkPlan:
    def carry_out() -> BulkDone:
        removed = bulk_edits.remove_targets(services.engine, ids, author, subject)
        return BulkDone(len(ids), removed)

    return BulkPlan(names, carry_out)


def _names(found: Sequence[SelectedTarget]) -> list[str]:
    return [f"{target.device}/{target.name}" for target in found]
