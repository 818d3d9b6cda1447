"""The page of events as texts: many of one kind as one line first, or each event."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from poller import errors
from poller.domain.inventory.target_filter import TargetFilter
from poller.domain.record.event_groups import EventGroup
from poller.domain.record.event_kinds import Event, Kind
from poller.presentation import event_json, formatting
from poller.presentation.health import Tone
from poller.presentation.record import event_texts
from poller.service.record.event_listing import FoundEvents, FoundGroups
from poller.web.api.contract import paging
from poller.web.pages.record.events_query import EventsQuery, EventView

_SECOND_MS = 1_000
#: Parameters of the address that an error can name, as `since: ...`.
_FIELDS = ("device", "kind", "since", "until")


@dataclass(frozen=True, slots=True)
class EventLine:
    """One event, or a group of one kind; `url` leads to the events of the group."""

    key: str
    at: str
    change: str
    tone: str
    subject: str
    path: str  # the page of the subject, below the root; "" for none
    message: str
    since: str  # the oldest event of a group
    url: str


@dataclass(frozen=True, slots=True)
class EventsView:
    """A page of events."""

    as_of: str
    query: EventsQuery
    lines: Sequence[EventLine]
    command: str
    empty: str
    note: str  # why events of the last seconds may be missing
    first: str
    following: str

    @property
    def views(self) -> Sequence[EventView]:
        return list(EventView)

    @property
    def kinds(self) -> Mapping[str, str]:
        """Every kind with its words, in the order of the words."""
        return {kind.value: event_texts.words(kind) for kind in sorted(Kind)}


def build_view(
    query: EventsQuery, wanted: TargetFilter, found: FoundEvents | FoundGroups, now_ms: int
) -> EventsView:
    """Build the view of one page."""
    groups = found.groups if isinstance(found, FoundGroups) else _one_by_one(found)
    cursor = paging.encode(found.next_key)
    return EventsView(
        as_of=formatting.instant(now_ms),
        query=query,
        lines=[_line(group, query) for group in groups],
        command=query.command(wanted),
        empty="" if groups else _empty(query, bool(cursor)),
        note=f"Events of the last seconds may be missing: {found.stream_error}."
        if found.stream_error
        else "",
        first=query.url() if query.after else "",
        following=query.url(after=cursor) if cursor else "",
    )


def wrong_field(error: errors.PollerError) -> str:
    """The field of the form that an error is about; "" for none of them."""
    if isinstance(error, errors.NotFound):
        return "device"
    named = error.message.partition(":")[0]
    return named if named in _FIELDS else ""


def row(event: Event) -> dict[str, str]:
    """The columns of a file."""
    item = event_json.item(event)
    return {name: item[name] for name in ("at", "kind", "device", "target", "message")}


def _one_by_one(found: FoundEvents) -> list[EventGroup]:
    return [EventGroup([each.event]) for each in found.events]


def _line(group: EventGroup, query: EventsQuery) -> EventLine:
    event = group.newest
    is_many = group.number > 1
    subject = event_texts.subject(group)
    job = "" if is_many or subject else str(event.data.get("job", ""))
    message = event_texts.names(group) if is_many else event.message
    return EventLine(
        key=_key(group, subject + message),
        at=formatting.instant(event.at_ms),
        change=event_texts.change(group),
        tone=str(Tone.LATE) if event.kind.is_bad else "",
        subject=subject or job,
        path=_path(event, job) if subject or job else "",
        message=message,
        since=formatting.instant(group.oldest_ms) if is_many else "",
        url=_members(group, query) if is_many else "",
    )


def _key(group: EventGroup, text: str) -> str:
    """Recognizes a line, also when its group has grown."""
    kind = group.newest.kind.value
    if group.number > 1:
        return f"{kind} since {group.oldest_ms}"
    return f"{kind} {group.oldest_ms} {zlib.crc32(text.encode('utf-8', 'replace')):08x}"


def _path(event: Event, job: str) -> str:
    return f"jobs/{quote(job, safe='')}" if job else f"devices/{quote(event.device, safe='')}"


def _members(group: EventGroup, query: EventsQuery) -> str:
    """The address of the events of a group: of its kind, within its span."""
    return query.url(
        kind=group.newest.kind.value,
        since=formatting.instant(group.oldest_ms),
        until=formatting.instant(group.newest.at_ms + _SECOND_MS),
        view=EventView.EVENTS,
    )


def _empty(query: EventsQuery, has_more: bool) -> str:
    """Why nothing is listed."""
    if has_more:
        return "None among the events that were looked at; there may be older ones."
    if query.after:
        return "There are no more."
    return "No event matches." if query.is_narrowed else "Nothing has changed yet."
