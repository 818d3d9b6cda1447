"""The address of the page of events: filter, grouping and page. It is the whole state of the view,
so that it can be shared.
"""

from __future__ import annotations

import enum
import shlex
from dataclasses import dataclass, fields, replace
from typing import Annotated, Literal
from urllib.parse import urlencode

from fastapi import Depends, Query

from poller.db.record.event_rows import EventKey
from poller.domain.fleet import search_words
from poller.domain.inventory import target_filter
from poller.domain.inventory.target_filter import TargetFilter
from poller.domain.record.event_kinds import Kind
from poller.service.record.event_listing import EventQuery
from poller.web.api.contract import paging
from poller.web.api.contract.bulk_bodies import LONGEST_WHERE
from poller.web.api.record import record_filters

#: Lines of one page.
LIMIT = 50


class EventView(enum.StrEnum):
    """How events are shown: many of one kind as one line, or one by one."""

    GROUPS = "groups"
    EVENTS = "events"

    @property
    def words(self) -> str:
        return "one by one" if self is EventView.EVENTS else "grouped"


@dataclass(frozen=True, slots=True)
class EventsQuery:
    """The parameters of the address. The texts are as they were typed."""

    where: str = ""
    device: str = ""  # DEVICE or DEVICE/TARGET, as in the command
    kind: str = ""
    bad: str = ""  # "yes": only changes for the worse
    since: str = ""
    until: str = ""
    view: EventView = EventView.GROUPS
    after: str = ""  # the cursor

    @property
    def wanted(self) -> TargetFilter:
        """The filter of devices. Raises InvalidInput."""
        return search_words.as_filter(self.where)

    @property
    def events(self) -> EventQuery:
        """The query of the service. Raises InvalidInput."""
        device, _, target = self.device.partition("/")
        return EventQuery(
            kinds=(Kind(self.kind),) if self.kind else (),
            device=device,
            target=target,
            wanted=self.wanted,
            since_ms=record_filters.since_ms(self.since),
            until_ms=record_filters.until_ms(self.until) or 0,
            bad=bool(self.bad),
        )

    @property
    def is_narrowed(self) -> bool:
        narrowing = (self.where, self.device, self.kind, self.bad, self.since, self.until)
        return any(narrowing)

    @property
    def is_newest(self) -> bool:
        """Whether new events belong to this page."""
        return not self.after and not self.until

    @property
    def after_key(self) -> EventKey | None:
        """Where the page before ended. Raises InvalidInput for a wrong cursor."""
        key = paging.decode(self.after, int, str)
        return (key[0], key[1]) if key else None

    def command(self, wanted: TargetFilter) -> str:
        """The command that lists the same."""
        words = ["poller", "events"]
        options = (
            ("where", target_filter.text(wanted)),
            ("device", self.device),
            ("kind", self.kind),
            ("since", self.since),
            ("until", self.until),
        )
        for option, text in options:
            if text:
                words += [f"--{option}", text]
        if self.bad:
            words.append("--bad")
        return shlex.join(words)

    def url(self, path: str = "events", **changes: object) -> str:
        """The address with some parameters changed. Every change goes back to the first page."""
        query = replace(self, **{"after": "", **changes})  # type: ignore[arg-type]
        given = {each.name: getattr(query, each.name) for each in fields(query)}
        if query.view is EventView.GROUPS:
            del given["view"]
        kept = {name: str(value) for name, value in given.items() if value}
        return f"{path}?{urlencode(kept)}" if kept else path


Time = Annotated[str, Query(max_length=40)]


def _query(
    where: Annotated[str, Query(max_length=LONGEST_WHERE)] = "",
    device: Annotated[str, Query(max_length=401)] = "",
    kind: Kind | Literal[""] = "",
    bad: Literal["", "yes"] = "",
    since: Time = "",
    until: Time = "",
    view: EventView = EventView.GROUPS,
    after: Annotated[str, Query(max_length=2_000)] = "",
) -> EventsQuery:
    texts = (where.strip(), device.strip(), str(kind), bad, since.strip(), until.strip())
    return EventsQuery(*texts, view, after)


#: A parameter of a route: FastAPI makes it from the address.
RequestedEvents = Annotated[EventsQuery, Depends(_query)]
