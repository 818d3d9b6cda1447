"""`/api/v1/targets`: what is polled, with which collector and how often."""

from __future__ import annotations

from typing import Literal

from fastapi import Request, Response

from poller.db.inventory.targets import Target
from poller.domain.inventory import key_position, target_filter
from poller.presentation import formatting
from poller.service.inventory import target_actions, target_bulk
from poller.service.inventory.bulk_plan import BulkPlan
from poller.web.api.contract import etags, paging, problems, resources
from poller.web.api.contract.bulk_bodies import BulkRequest
from poller.web.api.contract.etags import IfMatch
from poller.web.api.contract.needs import Call, Editing, Reading
from poller.web.api.contract.paging import Cursor, Limit, Page
from poller.web.api.inventory import inventory_bodies, inventory_bulk
from poller.web.api.inventory.inventory_bodies import (
    ChangedTarget,
    DeviceName,
    NewTarget,
    TargetEdit,
    TargetId,
    TargetItem,
    TargetName,
    WhereQuery,
)
from poller.web.api.inventory.inventory_bulk import BulkResult

router = resources.router("targets")
of_device_router = resources.router("devices")


class TargetBulkEdit(TargetEdit):
    """The fields of many targets to be changed."""


class TargetBulk(BulkRequest):
    """A change of all targets that match a filter."""

    action: Literal["edit", "enable", "disable", "remove"]
    changes: TargetBulkEdit | None = None


@router.get("")
def list_targets(
    call: Reading,
    request: Request,
    response: Response,
    where: WhereQuery = "",
    limit: Limit = paging.DEFAULT_LIMIT,
    cursor: Cursor = "",
) -> Page[TargetItem]:
    """List the targets that match, by device and name.

    A page can have fewer items than its limit, also none: follow `next` until it is null.
    """
    key = paging.decode(cursor, str)
    wanted = target_filter.parse(where)
    after = key_position.parse(key[0]) if key else None
    found = target_actions.page(call.services, call.actor, wanted, limit, after)
    following = paging.encode([found.last.text] if found.last else None)
    paging.link_next(request, response, following)
    items = [inventory_bodies.target_item(target) for target in found.targets]
    return Page(items=items, next=following)


@router.post("/bulk", responses=problems.CHANGING)
def change_targets(call: Editing, body: TargetBulk) -> BulkResult:
    """Change all targets that match a filter. A dry run says how many there are."""
    plan = _plan(call, body)
    return inventory_bulk.result(plan, body, _action(body.action, len(plan.names)))


def _action(action: str, count: int) -> str:
    """`disable 42 targets`"""
    return f"{action} {formatting.counted(count, 'target')}"


def _plan(call: Call, body: TargetBulk) -> BulkPlan:
    inventory_bulk.refuse_unused(body, body.action, {"edit": "changes"})
    wanted = body.wanted()
    if body.action == "remove":
        return target_bulk.plan_removal(call.services, call.author, wanted)
    if body.changes is not None:
        fields, options = body.changes.split()
        return target_bulk.plan_edit(call.services, call.author, wanted, fields, options)
    fields = {"enabled": body.action == "enable"}
    return target_bulk.plan_edit(call.services, call.author, wanted, fields)


@router.get("/{target_id}")
def show_target(call: Reading, response: Response, target_id: TargetId) -> TargetItem:
    """Show one target by its id."""
    found = target_actions.show_by_id(call.services, call.actor, target_id)
    etags.set_tag(response, found.tag)
    return inventory_bodies.target_item(found)


@router.patch("/{target_id}", responses=problems.CHANGING)
def edit_target(
    call: Editing,
    response: Response,
    target_id: TargetId,
    body: TargetEdit,
    if_match: IfMatch = None,
) -> ChangedTarget:
    """Change the given fields of a target."""
    found = target_actions.show_by_id(call.services, call.actor, target_id)
    return _edit(call, response, found, body, if_match)


@router.delete("/{target_id}", status_code=204, responses=problems.CHANGING)
def remove_target(call: Editing, target_id: TargetId, if_match: IfMatch = None) -> None:
    """Remove a target."""
    found = target_actions.show_by_id(call.services, call.actor, target_id)
    expected = etags.expected(if_match)
    target_actions.remove(call.services, call.author, found.device, found.name, expected)


@of_device_router.get("/{name}/targets")
def list_targets_of_device(
    call: Reading,
    request: Request,
    response: Response,
    name: DeviceName,
    limit: Limit = paging.DEFAULT_LIMIT,
    cursor: Cursor = "",
) -> Page[TargetItem]:
    """List the targets of one device by name."""
    key = paging.decode(cursor, str)
    every = target_actions.of_device(call.services, call.actor, name, target_filter.ANY)
    rest = [target for target in every if key is None or target.name > key[0]]
    following = paging.encode([rest[limit - 1].name] if len(rest) > limit else None)
    paging.link_next(request, response, following)
    items = [inventory_bodies.target_item(target) for target in rest[:limit]]
    return Page(items=items, next=following)


@of_device_router.post("/{name}/targets", status_code=201, responses=problems.CHANGING)
def add_target(
    call: Editing, response: Response, name: DeviceName, body: NewTarget
) -> ChangedTarget:
    """Add a target to a device."""
    done = target_actions.add(call.services, call.author, name, body.given())
    etags.set_tag(response, done.target.tag)
    return inventory_bodies.changed_target(done.target, done.notes)


@of_device_router.get("/{name}/targets/{target}")
def show_target_of_device(
    call: Reading, response: Response, name: DeviceName, target: TargetName
) -> TargetItem:
    """Show one target by its device and name."""
    found = target_actions.show(call.services, call.actor, name, target)
    etags.set_tag(response, found.tag)
    return inventory_bodies.target_item(found)


@of_device_router.patch("/{name}/targets/{target}", responses=problems.CHANGING)
def edit_target_of_device(
    call: Editing,
    response: Response,
    name: DeviceName,
    target: TargetName,
    body: TargetEdit,
    if_match: IfMatch = None,
) -> ChangedTarget:
    """Change the given fields of a target."""
    found = target_actions.show(call.services, call.actor, name, target)
    return _edit(call, response, found, body, if_match)


@of_device_router.delete("/{name}/targets/{target}", status_code=204, responses=problems.CHANGING)
def remove_target_of_device(
    call: Editing, name: DeviceName, target: TargetName, if_match: IfMatch = None
) -> None:
    """Remove a target."""
    expected = etags.expected(if_match)
    target_actions.remove(call.services, call.author, name, target, expected)


def _edit(
    call: Call, response: Response, old: Target, body: TargetEdit, if_match: str | None
) -> ChangedTarget:
    fields, options = body.split()
    expected = etags.expected(if_match)
    done = target_actions.edit(
        call.services, call.author, old.device, old.name, fields, options, expected
    )
    etags.set_tag(response, done.target.tag)
    return inventory_bodies.changed_target(done.target, done.notes)
