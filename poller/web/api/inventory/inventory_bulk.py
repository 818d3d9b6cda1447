"""The answer to a change of many devices or targets: a dry run, or what was done."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from poller import errors
from poller.service import bulk_confirmation
from poller.service.inventory.bulk_plan import BulkPlan
from poller.web.api.contract import bulk_bodies
from poller.web.api.contract.bulk_bodies import BulkRequest, Matches
from poller.web.api.inventory import inventory_bodies
from poller.web.api.inventory.inventory_bodies import CreatedSite


class BulkResult(Matches):
    """The result of a change of many."""

    changed: int = Field(description="How many were changed, added or removed.")
    targets_removed: int = Field(description="Targets that went with their devices.")
    new_sites: list[CreatedSite] = Field(description="Sites that the change makes.")
    notes: list[str] = Field(description="What may be forgotten, such as a credential.")


def result(plan: BulkPlan, request: BulkRequest, action: str) -> BulkResult:
    """Carry out the plan unless it is a dry run. Raises NotConfirmed without the right number."""
    changed = targets_removed = 0
    if not request.dry_run:
        bulk_confirmation.refuse_unconfirmed(action, len(plan.names), request.confirm)
        done = plan.carry_out()
        changed, targets_removed = done.changed, done.targets_removed
    return BulkResult(
        **bulk_bodies.matched(plan.names, request.dry_run),
        changed=changed,
        targets_removed=targets_removed,
        new_sites=inventory_bodies.created_sites(plan.new_sites),
        notes=list(plan.notes),
    )


def refuse_unused(request: BulkRequest, action: str, part_of: Mapping[str, str]) -> None:
    """Raise InvalidInput if the part of the action is missing, or that of another one is there."""
    for owner, part in part_of.items():
        is_there = getattr(request, part) is not None
        if is_there and owner != action:
            raise errors.InvalidInput(f'{part}: the action "{action}" has none')
        if owner == action and not is_there:
            raise errors.InvalidInput(f'{part}: the action "{action}" needs it')
