"""Past events for the command line and the API: from SQL and, if newer, from the stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from poller import errors
from poller.db.inventory import devices, targets
from poller.db.record import event_rows
from poller.db.record.event_rows import EventKey, RecordedEvent
from poller.domain.access.actor import Actor
from poller.domain.inventory.target_filter import ANY, TargetFilter
from poller.domain.record import event_groups
from poller.domain.record.event_groups import EventGroup
from poller.domain.record.event_kinds import Event, EventFilter, Kind
from poller.service import site_limit, target_selection
from poller.state.cluster import event_stream

if TYPE_CHECKING:
    from poller.bootstrap import Services


#: Events that one page of groups is made from.
GROUPED = 500


@dataclass(frozen=True, slots=True)
class EventQuery:
    """Which events. Empty fields select all; all fields must match."""

    kinds: Sequence[Kind] = ()
    device: str = ""
    target: str = ""  # a target of the device
    wanted: TargetFilter = ANY
    since_ms: int = 0
    until_ms: int = 0
    bad: bool = False  # only changes for the worse


@dataclass(frozen=True, slots=True)
class FoundGroups:
    """A page of groups, the newest first, and the key of the next; None on the last page."""

    groups: Sequence[EventGroup]
    next_key: EventKey | None
    stream_error: str = ""


@dataclass(frozen=True, slots=True)
class FoundEvents:
    """A page of events, the newest first, and the key of the next; None on the last page."""

    events: Sequence[RecordedEvent]
    next_key: EventKey | None
    stream_error: str = ""  # why events of the last seconds may be missing


def event_filter(services: Services, actor: Actor, query: EventQuery) -> EventFilter:
    """Return the filter of a query and of the actor's site.

    Raises UnknownName for a site or collector that does not exist, NotFound for a device that the
    actor may not see; InvalidInput, NotAllowed, StoreError.
    """
    kinds = _kinds(query)
    names, target_ids = _selected(services, actor, query.wanted)
    if query.target and not query.device:
        raise errors.InvalidInput("target: a target is named with its device", hint="add device")
    if query.device and actor.site is not None:
        site_limit.visible_device(services, actor, query.device)
    return EventFilter(
        kinds=kinds,
        device=query.device,
        since_ms=query.since_ms,
        target=query.target,
        devices=names,
        target_ids=target_ids,
        until_ms=query.until_ms,
        visible=site_limit.visible_ids(services, actor),
    )


def page(
    services: Services, wanted: EventFilter, limit: int, before: EventKey | None = None
) -> FoundEvents:
    """Return one page of events. A page can be short although there is a next one.

    Raises NotFound for a device that neither the inventory nor an event names, StoreError.
    """
    fresh, stream_error = _unrecorded(services, wanted)
    recorded = event_rows.page(services.engine, wanted, limit, before)
    merged = _merged(fresh, recorded.events, before, recorded.next_key)
    if not merged and before is None and recorded.next_key is None:
        refuse_unknown(services, wanted)
    next_key = recorded.next_key if len(merged) <= limit else _key(merged[limit - 1])
    return FoundEvents(merged[:limit], next_key, stream_error)


def page_of_groups(
    services: Services, wanted: EventFilter, lines: int, before: EventKey | None = None
) -> FoundGroups:
    """Return one page of at most so many groups. A group may go on in the next page.

    Raises as `page`.
    """
    found = page(services, wanted, GROUPED, before)
    events = [each.event for each in found.events]
    number = event_groups.fitting(events, lines)
    next_key = found.next_key if number == len(events) else _key(found.events[number - 1])
    return FoundGroups(event_groups.group(events[:number]), next_key, found.stream_error)


def newest(services: Services, wanted: EventFilter, limit: int) -> FoundEvents:
    """Return the newest events, from as many pages as it takes. Raises as `page`."""
    found: list[RecordedEvent] = []
    part = page(services, wanted, limit)
    while True:
        found += part.events
        if part.next_key is None or len(found) >= limit:
            return FoundEvents(found, part.next_key, part.stream_error)
        part = page(services, wanted, limit - len(found), part.next_key)


def refuse_unknown(services: Services, wanted: EventFilter) -> None:
    """Raise NotFound for a device or target that neither the inventory nor any event names."""
    if not wanted.device:
        return
    same_name = EventFilter(device=wanted.device, target=wanted.target)
    if event_rows.recent(services.engine, same_name, 1) or _unrecorded(services, same_name)[0]:
        return
    if wanted.target:
        targets.show(services.engine, wanted.device, wanted.target)
    else:
        devices.show(services.engine, wanted.device)


def _kinds(query: EventQuery) -> tuple[Kind, ...]:
    """Return the wanted kinds, each once; none for all. Raises InvalidInput."""
    kinds = tuple(dict.fromkeys(query.kinds))
    if not query.bad:
        return kinds
    bad = tuple(kind for kind in kinds or Kind if kind.is_bad)
    if not bad:
        hint = "leave out bad, or choose another kind"
        raise errors.InvalidInput(f"kind: {kinds[0].value} is not bad", hint=hint, field="kind")
    return bad


def _selected(
    services: Services, actor: Actor, wanted: TargetFilter
) -> tuple[frozenset[str] | None, frozenset[int] | None]:
    """Return the devices that match, and the targets if the filter selects some; None for all."""
    if wanted.is_empty:
        return None, None
    wanted = site_limit.limited(actor, wanted)
    if not wanted.selects_targets:
        found = target_selection.select_devices(services, wanted)
        return frozenset(device.name for device in found), None
    chosen = target_selection.select_targets(services, wanted)
    names = frozenset(target.device for target in chosen)
    return names, frozenset(target.id for target in chosen)


def _unrecorded(services: Services, wanted: EventFilter) -> tuple[list[RecordedEvent], str]:
    """Return events of the stream that the leader has not copied to SQL, and why they may lack."""
    client, keys = services.redis, services.keys
    try:
        last = event_stream.recorded(client, keys)
        entries = event_stream.after(client, keys, last, services.settings.events_length)
    except errors.StoreError as error:
        return [], error.message
    fresh = []
    for entry in entries:
        if entry.event is not None and wanted.accepts(entry.event):
            fresh.append(RecordedEvent(entry.id, entry.event))
    return fresh, ""


def _merged(
    fresh: Sequence[RecordedEvent],
    recorded: Sequence[RecordedEvent],
    before: EventKey | None,
    end: EventKey | None,
) -> list[RecordedEvent]:
    """Return the events of both, each once, the newest first, between the keys of a page."""
    known = {each.id for each in recorded}
    merged = list(recorded)
    for each in fresh:
        is_below = before is None or _key(each) < before
        if each.id not in known and is_below and (end is None or _key(each) > end):
            merged.append(each)
    merged.sort(key=_key, reverse=True)
    return merged


def _key(each: RecordedEvent) -> EventKey:
    event: Event = each.event
    return event.at_ms, each.id
