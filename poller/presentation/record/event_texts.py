"""Groups of events in words, for the overview and the page of events."""

from __future__ import annotations

from poller.domain.record.event_groups import EventGroup
from poller.domain.record.event_kinds import Kind
from poller.presentation import formatting
from poller.presentation.health import GLYPHS, Tone

#: Devices or jobs that a line about many changes names.
NAMED = 3


def words(kind: Kind) -> str:
    """`device went down`"""
    return kind.value.replace("_", " ")


def change(group: EventGroup) -> str:
    """`▲ 12 × device went down`: bad changes have a glyph."""
    text = words(group.newest.kind)
    if group.number > 1:
        text = f"{formatting.exact(group.number)} × {text}"
    return f"{GLYPHS[Tone.LATE]} {text}" if group.newest.kind.is_bad else text


def names(group: EventGroup) -> str:
    """`ap-1, ap-2, ap-3 and 9 more`: the devices or jobs of the group; "" if it has none."""
    named = ", ".join(group.names[:NAMED])
    more = len(group.names) - NAMED
    return f"{named} and {formatting.exact(more)} more" if more > 0 else named


def subject(group: EventGroup) -> str:
    """`DEVICE/TARGET`, or `DEVICE`, of a single event; "" for a group."""
    if group.number > 1:
        return ""
    event = group.newest
    return "/".join(name for name in (event.device, event.target) if name)
