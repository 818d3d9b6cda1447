"""Events that belong together: many of one kind that follow each other within minutes.

A site that goes dark takes its devices along; a reader needs one line, not two hundred.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from poller.domain.record.event_kinds import Event, Kind

#: A longer pause between two events of one kind begins a new group.
PAUSE_MS = 120_000
#: Fewer events of a kind than this are lines of their own.
FEWEST = 3


@dataclass(frozen=True, slots=True)
class EventGroup:
    """Events of one kind, newest first."""

    events: Sequence[Event]

    @property
    def newest(self) -> Event:
        return self.events[0]

    @property
    def oldest_ms(self) -> int:
        return self.events[-1].at_ms

    @property
    def number(self) -> int:
        return len(self.events)

    @property
    def names(self) -> list[str]:
        """The devices or jobs of the events, each once."""
        named = (event.device or str(event.data.get("job", "")) for event in self.events)
        return list(dict.fromkeys(name for name in named if name))


def group(events: Iterable[Event]) -> list[EventGroup]:
    """Return the groups of events that are newest first, in the order of their newest event."""
    open_groups: dict[Kind, list[Event]] = {}
    found: list[list[Event]] = []
    for event in events:
        members = open_groups.get(event.kind)
        if members is not None and members[-1].at_ms - event.at_ms <= PAUSE_MS:
            members.append(event)
            continue
        members = [event]
        open_groups[event.kind] = members
        found.append(members)
    return sorted(_split(found), key=lambda each: -each.newest.at_ms)


def fitting(events: Sequence[Event], lines: int) -> int:
    """Return how many of the events, which are newest first, become at most so many groups."""
    number = len(events)
    while number > lines and len(group(events[:number])) > lines:
        number = max(lines, number // 2)
    return number


def _split(found: Iterable[Sequence[Event]]) -> list[EventGroup]:
    """Small groups fall apart into their events."""
    groups = []
    for members in found:
        if len(members) < FEWEST:
            groups += [EventGroup([event]) for event in members]
        else:
            groups.append(EventGroup(members))
    return groups
