"""Parents of devices: what is stored, and what neighbours suggest for a person to accept."""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from poller import errors
from poller.db.alerts import neighbour_targets, parent_rows
from poller.db.alerts.parent_rows import StoredParent
from poller.db.in_list import in_list
from poller.db.inventory import inventory_feed
from poller.db.inventory.inventory_feed import Author
from poller.db.record import stored_readings
from poller.db.tables import targets
from poller.domain.access import audit_entry
from poller.domain.access.actor import Actor
from poller.domain.access.audit_entry import AuditEntry
from poller.domain.alerts.topology import neighbour_links, neighbour_readings, parent_suggestion
from poller.domain.alerts.topology.neighbour_links import LinkedDevice
from poller.domain.alerts.topology.neighbour_readings import SeenNeighbours
from poller.domain.alerts.topology.parent_suggestion import Suggestion
from poller.domain.batched import batched
from poller.domain.inventory.did_you_mean import nearest
from poller.presentation import formatting
from poller.service import site_limit

if TYPE_CHECKING:
    from poller.bootstrap import Services

#: Targets whose readings are in memory together.
_PAGE = 200


class SuggestionState(enum.StrEnum):
    """The effect of a suggestion. Only `new` ones are accepted unless a device is named."""

    NEW = "new"  # the device has no parent
    CHANGE = "change"  # the device has another parent
    SAME = "same"  # the parent is stored already
    UNCLEAR = "unclear"  # several parents would do: a person chooses


@dataclass(frozen=True, slots=True)
class ShownSuggestion:
    """One suggested parent, and why."""

    device: str
    parent: str
    state: SuggestionState
    stored: str  # the present parent; "" is none
    link: str  # `eth1 - ge-0/0/7 of core1`
    reason: str
    others: Sequence[str]


@dataclass(frozen=True, slots=True)
class Suggestions:
    """Suggested parents by device, and what they stand on."""

    items: Sequence[ShownSuggestion]
    devices_read: int  # devices whose neighbours are stored
    unknown_neighbours: int  # neighbours that are no device of the inventory


@dataclass(frozen=True, slots=True)
class _Found:
    suggestions: Sequence[Suggestion]
    names: Mapping[int, str]
    stored: Mapping[int, StoredParent]  # also parents that are of another site
    devices_read: int
    unknown: int


def listing(services: Services, actor: Actor) -> list[StoredParent]:
    """Return the stored parents, by the names of the devices. Raises StoreError."""
    return parent_rows.listing(services.engine, actor.site)


def suggestions(services: Services, actor: Actor, cores: Collection[str] = ()) -> Suggestions:
    """Return the parents that the neighbours of devices suggest; nothing is changed.

    `cores` are devices that a person names as the core. Raises NotFound, StoreError.
    """
    found = _find(services, actor, cores)
    items = [_shown(found, each) for each in found.suggestions]
    return Suggestions(items, found.devices_read, found.unknown)


def accept(
    services: Services,
    author: Author,
    actor: Actor,
    devices: Collection[str] = (),
    cores: Collection[str] = (),
) -> list[ShownSuggestion]:
    """Store suggested parents: of the named devices, or of all that have none; all or nothing.

    Returns what was stored. Raises NotFound for a device without a suggestion, InvalidInput,
    StoreError.
    """
    found = _find(services, actor, cores)
    shown = {each.device: (each, raw) for each, raw in _pairs(found)}
    _refuse_unsuggested(devices, shown)
    accepted = []
    for item, raw in shown.values():
        is_wanted = item.device in devices if devices else item.state is SuggestionState.NEW
        if is_wanted and item.state is not SuggestionState.SAME:
            accepted.append((item, raw))
    _store(services, author, accepted)
    return [item for item, _ in accepted]


def _store(
    services: Services, author: Author, accepted: Sequence[tuple[ShownSuggestion, Suggestion]]
) -> None:
    if not accepted:
        return
    parents = {raw.device: raw.parent for _, raw in accepted}
    names = audit_entry.bounded_names([f"{item.device} -> {item.parent}" for item, _ in accepted])
    entry = AuditEntry("device.parents", "neighbours", after={"names": names}, count=len(parents))
    with inventory_feed.change(services.engine, author) as change:
        parent_rows.set_many(change, parents, parent_rows.NEIGHBOURS)
        of_devices = in_list(targets.c.device_id, sorted(parents))
        inventory_feed.stamp_targets(change, of_devices)
        change.record(entry)


def _refuse_unsuggested(devices: Collection[str], suggested: Collection[str]) -> None:
    for name in devices:
        if name not in suggested:
            near = nearest(name, suggested)
            hint = f"did you mean {near}? " if near else ""
            raise errors.NotFound(
                f'no parent is suggested for "{name}"',
                hint=f"{hint}poller device parents --suggested",
            )


def _find(services: Services, actor: Actor, cores: Collection[str]) -> _Found:
    linked = _linked_devices(services, actor)
    names = {each.id: each.name for each in linked}
    ids = {name: device_id for device_id, name in names.items()}
    for core in cores:
        if core not in ids:
            site_limit.visible_device(services, actor, core)
            raise errors.NotFound(f'no device named "{core}"', hint="poller device list")
    links = neighbour_links.link_map(linked)
    stored = {each.device_id: each for each in listing(services, actor)}
    inside = {key: each.parent_id for key, each in stored.items() if each.parent_id in names}
    chosen = [ids[core] for core in cores]
    return _Found(
        parent_suggestion.suggest(links, names, inside, chosen),
        names,
        stored,
        sum(bool(each.sightings) for each in linked),
        links.unknown,
    )


def _linked_devices(services: Services, actor: Actor) -> list[LinkedDevice]:
    """Return all devices, each with the neighbours that its last poll saw."""
    of_device: dict[int, SeenNeighbours] = {}
    listed = neighbour_targets.listing(services.engine, actor.site)
    device_of = {each.target_id: each.device_id for each in listed}
    for ids in batched(list(device_of), _PAGE):
        for target_id, poll in stored_readings.latest(services.engine, ids).items():
            seen = neighbour_readings.read(poll.readings)
            before = of_device.setdefault(device_of[target_id], SeenNeighbours())
            before.chassis = before.chassis or seen.chassis
            before.system_name = before.system_name or seen.system_name
            before.sightings += seen.sightings
    found = []
    for device in neighbour_targets.known_devices(services.engine, actor.site):
        seen = of_device.get(device.id, SeenNeighbours())
        found.append(LinkedDevice(*device, seen.chassis, seen.system_name, tuple(seen.sightings)))
    return found


def _pairs(found: _Found) -> list[tuple[ShownSuggestion, Suggestion]]:
    return [(_shown(found, each), each) for each in found.suggestions]


def _shown(found: _Found, of: Suggestion) -> ShownSuggestion:
    names = found.names
    stored = found.stored.get(of.device)
    ports = f"{of.link.port or '?'} - {of.link.other_port or '?'}"
    return ShownSuggestion(
        device=names[of.device],
        parent=names[of.parent],
        state=_state(of, stored),
        stored=stored.parent if stored is not None else "",
        link=f"{ports} of {names[of.parent]}",
        reason=_reason(names, of),
        others=[names[other] for other in of.others],
    )


def _state(of: Suggestion, stored: StoredParent | None) -> SuggestionState:
    if stored is not None and stored.parent_id == of.parent:
        return SuggestionState.SAME
    if not of.is_clear:
        return SuggestionState.UNCLEAR
    return SuggestionState.NEW if stored is None else SuggestionState.CHANGE


_WHY_CORE = {
    "named": "the core that was named",
    "stored": "the top of the stored parents",
    "links": "the device with the most links of its network",
}


def _reason(names: Mapping[int, str], of: Suggestion) -> str:
    """Return why: `2 links from core1, the device with the most links of its network`."""
    away = formatting.counted(of.distance, "link")
    text = f"{away} from {names[of.core]}, {_WHY_CORE[of.why_core]}"
    if of.others:
        others = ", ".join(names[other] for other in of.others)
        text += f"; {others} would do as well: choose with poller device parent"
    return text
