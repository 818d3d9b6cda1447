"""What happened that a person may want to know of: changes, not polls. Values only; nothing is told to anybody here."""

from __future__ import annotations

import enum
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from poller.domain.failures.outcome import clean

NAME_LIMIT = 200
_MOST = 2**63 - 1


class Kind(enum.StrEnum):
    """A closed list; each is in the past tense."""

    DEVICE_WENT_DOWN = "device_went_down"
    DEVICE_RECOVERED = "device_recovered"
    BREAKER_OPENED = "breaker_opened"
    BREAKER_CLOSED = "breaker_closed"
    SITE_OPENED = "site_opened"
    SITE_RECOVERED = "site_recovered"
    DEAD_LETTER_MADE = "dead_letter_made"
    DEAD_LETTER_REQUEUED = "dead_letter_requeued"
    DEAD_LETTER_CLEARED = "dead_letter_cleared"
    LEADERSHIP_TAKEN = "leadership_taken"
    LEADERSHIP_HANDED_OVER = "leadership_handed_over"
    LEADERSHIP_LOST = "leadership_lost"
    WORKER_JOINED = "worker_joined"
    WORKER_LOST = "worker_lost"
    WORKER_LEFT = "worker_left"
    WORKER_STALLED = "worker_stalled"
    COLLECTOR_ISOLATED = "collector_isolated"
    COLLECTOR_QUARANTINED = "collector_quarantined"
    COLLECTOR_RELEASED = "collector_released"
    BOARD_REBUILT = "board_rebuilt"
    BOARD_REPAIRED = "board_repaired"
    CLOCK_MOVED = "clock_moved"
    TRAP_RECEIVED = "trap_received"

    @property
    def is_bad(self) -> bool:
        return self in _BAD


_BAD = frozenset(
    (
        Kind.DEVICE_WENT_DOWN,
        Kind.BREAKER_OPENED,
        Kind.SITE_OPENED,
        Kind.DEAD_LETTER_MADE,
        Kind.LEADERSHIP_LOST,
        Kind.WORKER_LOST,
        Kind.WORKER_STALLED,
        Kind.COLLECTOR_ISOLATED,
        Kind.COLLECTOR_QUARANTINED,
        Kind.BOARD_REPAIRED,
        Kind.CLOCK_MOVED,
    )
)


@dataclass(frozen=True, slots=True)
class Event:
    """`at_ms` is UTC; the names are those of that moment. `data` is for programs, `message` for people."""

    at_ms: int
    kind: Kind
    message: str
    device: str = ""
    target: str = ""
    target_id: int | None = None
    device_id: int | None = None
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which events somebody asks for; nothing said is everything."""

    kinds: Collection[Kind] = ()
    device: str = ""
    since_ms: int = 0
    target: str = ""

    def accepts(self, event: Event) -> bool:
        known = not self.kinds or event.kind in self.kinds
        named = self.device in ("", event.device) and self.target in ("", event.target)
        return known and named and event.at_ms >= self.since_ms


def pack(event: Event) -> dict[str, str]:
    """The fields of its entry in the stream; those that say nothing are left out."""
    fields = {
        "at_ms": str(event.at_ms),
        "kind": event.kind.value,
        "message": clean(event.message),
        "device": event.device,
        "target": event.target,
        "target_id": "" if event.target_id is None else str(event.target_id),
        "device_id": "" if event.device_id is None else str(event.device_id),
        "data": json.dumps(dict(event.data), default=str) if event.data else "",
    }
    return {name: text for name, text in fields.items() if text}


def unpack(fields: Mapping[str, str]) -> Event | None:
    """The event of an entry, fit for any database; None for what is no event of this version."""
    try:
        return Event(
            at_ms=_number(fields["at_ms"]),
            kind=Kind(fields["kind"]),
            message=clean(fields.get("message", "")),
            device=clean(fields.get("device", ""), NAME_LIMIT),
            target=clean(fields.get("target", ""), NAME_LIMIT),
            target_id=_number(fields["target_id"]) if "target_id" in fields else None,
            device_id=_number(fields["device_id"]) if "device_id" in fields else None,
            data=_data(fields.get("data", "{}")),
        )
    except (KeyError, ValueError, TypeError, RecursionError):
        return None


def _number(text: str) -> int:
    value = int(text)
    if not 0 <= value <= _MOST:
        raise ValueError(text)
    return value


def _data(text: str) -> dict[str, Any]:
    # PostgreSQL has no place for this one character.
    found = json.loads(text.replace("\\u0000", " "))
    if not isinstance(found, dict):
        raise TypeError(text)
    return found
