"""`/api/v1/devices`: the devices of the network and their targets."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Query, Request, Response

from poller.domain.fleet.device_sort import DeviceSort, SortKey
from poller.domain.inventory import tag_change, target_filter
from poller.domain.inventory.tag_change import TagChange
from poller.presentation import formatting
from poller.service.fleet import sorted_devices
from poller.service.inventory import device_actions, device_bulk
from poller.service.inventory.bulk_plan import BulkPlan
from poller.web.api.contract import etags, paging, problems, resources
from poller.web.api.contract.bulk_bodies import BulkRequest
from poller.web.api.contract.etags import IfMatch
from poller.web.api.contract.needs import Call, Editing, Reading
from poller.web.api.contract.paging import Cursor, Limit, Page
from poller.web.api.inventory import inventory_bodies, inventory_bulk
from poller.web.api.inventory.inventory_bodies import (
    ChangedDevice,
    DeviceBody,
    DeviceBulkEdit,
    DeviceEdit,
    DeviceItem,
    DeviceName,
    NewDevice,
    NewTarget,
    WhereQuery,
)
from poller.web.api.inventory.inventory_bulk import BulkResult

router = resources.router("devices")

SortQuery = Annotated[
    DeviceSort,
    Query(
        description="The order: `worst` has failing devices first, the longest without a good poll "
        "first; `last_ok` all that are not ok, the oldest good poll first. Both go on by name."
    ),
]


class DeviceBulk(BulkRequest):
    """A change of all devices that match a filter."""

    action: Literal["edit", "enable", "disable", "remove", "add_target"]
    changes: DeviceBulkEdit | None = None
    target: NewTarget | None = None


@router.get("")
def list_devices(
    call: Reading,
    request: Request,
    response: Response,
    where: WhereQuery = "",
    sort: SortQuery = DeviceSort.NAME,
    limit: Limit = paging.DEFAULT_LIMIT,
    cursor: Cursor = "",
) -> Page[DeviceItem]:
    """List the devices that match, by name unless another order is asked for.

    A page can have fewer items than its limit, also none: follow `next` until it is null.
    """
    key = paging.decode(cursor, int, int, str, str)
    wanted = target_filter.parse(where)
    after = SortKey(*key) if key else None
    found = sorted_devices.page(call.services, call.actor, wanted, sort, limit, after)
    following = paging.encode(found.last)
    paging.link_next(request, response, following)
    items = [inventory_bodies.device_item(device) for device in found.devices]
    return Page(items=items, next=following)


@router.post("", status_code=201, responses=problems.CHANGING)
def add_device(call: Editing, response: Response, body: NewDevice) -> ChangedDevice:
    """Add a device and its first targets."""
    fields, targets = body.split()
    done = device_actions.add(call.services, call.author, fields, targets)
    etags.set_tag(response, done.device.tag)
    return inventory_bodies.changed_device(done)


@router.post("/bulk", responses=problems.CHANGING)
def change_devices(call: Editing, body: DeviceBulk) -> BulkResult:
    """Change all devices that match a filter. A dry run says how many there are."""
    plan = _plan(call, body)
    return inventory_bulk.result(plan, body, _action(body.action, len(plan.names)))


def _action(action: str, count: int) -> str:
    """`add a target to 42 devices`"""
    verb = "add a target to" if action == "add_target" else action
    return f"{verb} {formatting.counted(count, 'device')}"


def _plan(call: Call, body: DeviceBulk) -> BulkPlan:
    inventory_bulk.refuse_unused(body, body.action, {"edit": "changes", "add_target": "target"})
    wanted = body.wanted()
    services, author = call.services, call.author
    if body.action == "remove":
        return device_bulk.plan_removal(services, author, wanted)
    if body.target is not None:
        return device_bulk.plan_targets(services, author, wanted, body.target.given())
    if body.changes is not None:
        fields, tags = _changes(body.changes)
        return device_bulk.plan_edit(services, author, wanted, fields, tags)
    return device_bulk.plan_edit(services, author, wanted, {"enabled": body.action == "enable"})


@router.get("/{name}")
def show_device(call: Reading, response: Response, name: DeviceName) -> DeviceBody:
    """Show one device and its targets."""
    device, targets = device_actions.show(call.services, call.actor, name)
    etags.set_tag(response, device.tag)
    return inventory_bodies.device_body(device, targets)


@router.patch("/{name}", responses=problems.CHANGING)
def edit_device(
    call: Editing, response: Response, name: DeviceName, body: DeviceEdit, if_match: IfMatch = None
) -> ChangedDevice:
    """Change the given fields of a device."""
    expected = etags.expected(if_match)
    fields, tags = _changes(body)
    done = device_actions.edit(call.services, call.author, name, fields, tags, expected)
    etags.set_tag(response, done.device.tag)
    return inventory_bodies.changed_device(done)


def _changes(body: DeviceBulkEdit) -> tuple[dict[str, object], TagChange | None]:
    """The given fields, and the tags to add and to remove. Raises InvalidInput."""
    fields = body.given()
    added = fields.pop("add_tags", ())
    removed = fields.pop("remove_tags", ())
    return fields, tag_change.checked(fields.get("tags"), added, removed)


@router.delete("/{name}", status_code=204, responses=problems.CHANGING)
def remove_device(call: Editing, name: DeviceName, if_match: IfMatch = None) -> None:
    """Remove a device with its targets."""
    device_actions.remove(call.services, call.author, name, etags.expected(if_match))
