"""Actions on one device: list, show, add, edit, remove."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from poller import errors
from poller.db.inventory import devices, targets
from poller.db.inventory.devices import Device
from poller.db.inventory.inventory_feed import Author
from poller.db.inventory.targets import Target, TargetPort
from poller.domain.access.actor import Actor
from poller.domain.inventory import draft
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.inventory.key_position import Position
from poller.domain.inventory.tag_change import TagChange
from poller.domain.inventory.target_filter import TargetFilter
from poller.service import site_limit
from poller.service.inventory import collector_checks, new_sites, option_secrets, port_placement
from poller.service.inventory.new_sites import NewSite
from poller.service.selection import target_page

if TYPE_CHECKING:
    from poller.bootstrap import Services


@dataclass(frozen=True, slots=True)
class DevicePage:
    """Devices in the order of their names; `last` is the name to go on after, None at the end."""

    devices: Sequence[Device]
    last: str | None


@dataclass(frozen=True, slots=True)
class CheckedEdit:
    """An edit of a device that can be stored, and the sites it makes."""

    change: DeviceDraft
    new_sites: Sequence[NewSite]
    port: TargetPort | None  # of the new address

    @property
    def notes(self) -> list[str]:
        return [port_placement.note(self.port)] if self.port else []


@dataclass(frozen=True, slots=True)
class CheckedDevice:
    """A new device with its first targets that can be stored, and the sites it makes."""

    device: DeviceDraft
    targets: Sequence[TargetDraft]
    new_sites: Sequence[NewSite]
    notes: Sequence[str]


@dataclass(frozen=True, slots=True)
class DeviceChange:
    """A device after its change, the sites that it made, and what may be forgotten."""

    device: Device
    new_sites: Sequence[NewSite] = ()
    notes: Sequence[str] = ()


def page(
    services: Services,
    actor: Actor,
    wanted: TargetFilter,
    limit: int,
    after: str = "",
    *,
    fill: bool = False,
) -> DevicePage:
    """Return the next devices that match and that the actor may see.

    A page may have fewer rows than the limit, though more match: a request looks at a bounded part
    of the fleet. `fill` goes on until the page is full. Raises UnknownName for an unknown site or
    collector, NotAllowed for a filter of other sites.
    """
    limited = site_limit.limited(actor, wanted)
    position = Position(after) if after else None
    ids: list[int] = []
    while True:
        found = target_page.device_page(services, limited, position, limit - len(ids))
        ids += [device.id for device in found.devices]
        position = found.next
        if position is None or len(ids) >= limit or not fill:
            break
    by_id = {row.id: row for row in devices.listing(services.engine, ids=ids, limit=None)}
    rows = [by_id[key] for key in ids if key in by_id]
    return DevicePage(rows, position.device if position else None)


def show(services: Services, actor: Actor, name: str) -> tuple[Device, list[Target]]:
    """Return one device and its targets. Raises NotFound, also for one that is not visible."""
    device = site_limit.visible_device(services, actor, name)
    found = targets.of_device(services.engine, name)
    return device, option_secrets.shown_list(found, actor)


def default_targets(services: Services) -> list[dict[str, Any]]:
    """Return the targets of a new device that names none: one of the default collector, if any."""
    collector = services.settings.default_collector
    return [{"collector": collector}] if collector else []


def add(
    services: Services,
    author: Author,
    fields: Mapping[str, Any],
    first: Sequence[Mapping[str, Any]] | None = None,
) -> DeviceChange:
    """Add a device and its first targets; None is one target of the default collector.

    Raises InvalidInput, UnknownName (credential), AlreadyExists, NotAllowed (site).
    """
    new = check_new(services, author, fields, first)
    added = devices.add(services.engine, new.device, new.targets, author)
    return DeviceChange(added, new.new_sites, new.notes)


def check_new(
    services: Services,
    author: Author,
    fields: Mapping[str, Any],
    first: Sequence[Mapping[str, Any]] | None = None,
) -> CheckedDevice:
    """Return a checked new device with its first targets. Changes nothing."""
    device = check_fields(services, author, fields)
    wanted = default_targets(services) if first is None else first
    placed = port_placement.of_new(services.registry, device.port, wanted)
    drafts, notes = _first_targets(services, author, placed.targets, device.credential)
    created = new_sites.missing(services.engine, [device.site])
    return CheckedDevice(device, drafts, created, [*placed.notes, *notes])


def check_fields(services: Services, author: Author, fields: Mapping[str, Any]) -> DeviceDraft:
    """Return the checked fields of a new device that its author may add. Changes nothing."""
    device = checked_device(fields)
    site_limit.require_site(author, device.site or "")
    site_limit.require_credential(services, author, device.credential)
    site_limit.require_parent(services, author, device.parent)
    return device


def _first_targets(
    services: Services,
    author: Author,
    wanted: Sequence[Mapping[str, Any]],
    credential: str | None,
) -> tuple[list[TargetDraft], list[str]]:
    """Return checked targets of a new device with this credential, and notes about them."""
    drafts = []
    notes = []
    for number, fields in enumerate(wanted):
        used = fields.get("credential") or credential
        site_limit.require_credential(services, author, fields.get("credential"))
        with errors.inside(f"targets.{number}"):
            target, more = collector_checks.new_target(services, fields, [used])
        drafts.append(target)
        notes += more
    return drafts, notes


def edit(
    services: Services,
    author: Author,
    name: str,
    fields: Mapping[str, Any],
    tags: TagChange | None = None,
    expected: str | None = None,
) -> DeviceChange:
    """Change the given fields of a device; the others stay.

    Raises InvalidInput, NotFound, AlreadyExists (new name), NotAllowed (new site), EditConflict if
    the device is not the expected version.
    """
    checked = check_edit(services, author, name, fields, tags)
    changed = devices.edit(
        services.engine, name, checked.change, author, tags, expected, checked.port
    )
    return DeviceChange(changed, checked.new_sites, checked.notes)


def check_edit(
    services: Services,
    author: Author,
    name: str,
    fields: Mapping[str, Any],
    tags: TagChange | None = None,
) -> CheckedEdit:
    """Return a checked edit of a device. Changes nothing."""
    refuse_nothing("device", fields, tags)
    site_limit.visible_device(services, author.actor, name)
    new_name = fields.get("name")
    change = checked_device({**fields, "name": name if new_name is None else new_name})
    _check_references(services, author, change)
    port = port_placement.of_stored(services, name, change.port)
    return CheckedEdit(change, new_sites.missing(services.engine, [change.site]), port)


def check_many(services: Services, author: Author, fields: Mapping[str, Any]) -> DeviceDraft:
    """Return checked changes of many devices. Raises InvalidInput, NotAllowed."""
    change, problems = draft.device_changes(fields)
    draft.raise_first(problems)
    _check_references(services, author, change)
    return change


def _check_references(services: Services, author: Author, change: DeviceDraft) -> None:
    """Raise UnknownName or NotAllowed for the new site or the new credential of a device."""
    site_limit.require_parent(services, author, change.parent)
    if change.site is not None:
        site_limit.require_site(author, change.site)
    if change.credential:
        site_limit.require_credential(services, author, change.credential)
        collector_checks.known_kind(services, change.credential)  # raises UnknownName


def remove(services: Services, author: Author, name: str, expected: str | None = None) -> int:
    """Remove a device with its targets. Returns the number of removed targets.

    Raises NotFound, EditConflict if the device is not the expected version.
    """
    site_limit.visible_device(services, author.actor, name)
    return devices.remove(services.engine, [name], author, expected)


def checked_device(fields: Mapping[str, Any]) -> DeviceDraft:
    """Return the checked fields of a device. Raises InvalidInput for the first problem."""
    device, problems = draft.device(fields)
    draft.raise_first(problems)
    return device


def refuse_nothing(noun: str, fields: Mapping[str, Any], *more: object) -> None:
    """Raise InvalidInput for an edit that gives no field."""
    if all(value is None for value in (*fields.values(), *more)):
        hint = f"give at least one field: poller {noun} edit --help"
        raise errors.InvalidInput("nothing to change", hint=hint)
