"""Events: changes that an operator may want to know, not polls. This module publishes nothing."""

from __future__ import annotations

import enum
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from poller.domain.failures.outcome import clean

NAME_LIMIT = 200
#: The largest integer of a BIGINT column.
_MAX_INTEGER = 2**63 - 1


class Kind(enum.StrEnum):
    """A closed list of kinds, each in the past tense."""

    DEVICE_WENT_DOWN = "device_went_down"
    DEVICE_RECOVERED = "device_recovered"
    TARGET_FAILED = "target_failed"
    TARGET_RECOVERED = "target_recovered"
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
    WORKER_DEATH_EXPLAINED = "worker_death_explained"  # the loss was an event before
    WORKER_LEFT = "worker_left"
    WORKER_STALLED = "worker_stalled"
    WORKER_DRAINED = "worker_drained"  # a person asked it to take nothing new
    WORKER_RESUMED = "worker_resumed"
    QUEUE_ENTRY_REFUSED = "queue_entry_refused"
    COLLECTOR_ISOLATED = "collector_isolated"
    COLLECTOR_QUARANTINED = "collector_quarantined"
    COLLECTOR_RELEASED = "collector_released"
    BOARD_REBUILT = "board_rebuilt"
    BOARD_REPAIRED = "board_repaired"
    CLOCK_MOVED = "clock_moved"
    PRUNE_REFUSED = "prune_refused"
    TRAP_RECEIVED = "trap_received"
    JOB_ADDED = "job_added"
    JOB_VANISHED = "job_vanished"
    JOB_FAILED = "job_failed"
    JOB_HELD_BACK = "job_held_back"
    JOB_WENT_OVERDUE = "job_went_overdue"
    JOB_RECOVERED = "job_recovered"
    JOB_PAUSED = "job_paused"
    JOB_RESUMED = "job_resumed"
    ALERT_FIRED = "alert_fired"
    ALERT_RESOLVED = "alert_resolved"
    ALERT_REFUSED = "alert_refused"  # by the database: it cannot be kept
    RULE_FILE_APPLIED = "rule_file_applied"
    RULE_FILE_REFUSED = "rule_file_refused"
    NOTIFICATION_FAILED = "notification_failed"

    @property
    def is_bad(self) -> bool:
        return self in _BAD


_BAD = frozenset(
    (
        Kind.DEVICE_WENT_DOWN,
        Kind.TARGET_FAILED,
        Kind.BREAKER_OPENED,
        Kind.SITE_OPENED,
        Kind.DEAD_LETTER_MADE,
        Kind.LEADERSHIP_LOST,
        Kind.WORKER_LOST,
        Kind.WORKER_STALLED,
        Kind.QUEUE_ENTRY_REFUSED,
        Kind.COLLECTOR_ISOLATED,
        Kind.COLLECTOR_QUARANTINED,
        Kind.BOARD_REPAIRED,
        Kind.CLOCK_MOVED,
        Kind.PRUNE_REFUSED,
        Kind.JOB_VANISHED,
        Kind.JOB_FAILED,
        Kind.JOB_HELD_BACK,
        Kind.JOB_WENT_OVERDUE,
        Kind.ALERT_FIRED,
        Kind.ALERT_REFUSED,
        Kind.RULE_FILE_REFUSED,
        Kind.NOTIFICATION_FAILED,
    )
)


@dataclass(frozen=True, slots=True)
class Event:
    """One event. `at_ms` is UTC; the names are those of that moment. `data` is for programs."""

    at_ms: int
    kind: Kind
    message: str
    device: str = ""
    target: str = ""
    target_id: int | None = None
    device_id: int | None = None
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class VisibleIds:
    """The devices and targets that an actor of one site may see. Ids are never used again."""

    device_ids: Collection[int]
    target_ids: Collection[int]

    def covers(self, event: Event) -> bool:
        """Whether the event is about one of them."""
        return event.device_id in self.device_ids or event.target_id in self.target_ids


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Selects events; an empty field selects all.

    `devices` are the names that a filter of devices selects, `target_ids` the ids that a filter of
    targets selects: None is all. `visible` is the limit of an actor; None for no limit.
    """

    kinds: Collection[Kind] = ()
    device: str = ""
    since_ms: int = 0
    target: str = ""
    devices: Collection[str] | None = None
    target_ids: Collection[int] | None = None
    until_ms: int = 0  # 0: no end
    visible: VisibleIds | None = None

    def accepts(self, event: Event) -> bool:
        """Whether the filter selects the event."""
        if not self._is_in_span(event.at_ms):
            return False
        if self.visible is not None and not self.visible.covers(event):
            return False
        if self.kinds and event.kind not in self.kinds:
            return False
        if self.device not in ("", event.device):
            return False
        if self.target not in ("", event.target):
            return False
        if self.devices is not None and event.device not in self.devices:
            return False
        if self.target_ids is not None and event.target_id is not None:
            return event.target_id in self.target_ids
        return True

    def _is_in_span(self, at_ms: int) -> bool:
        return self.since_ms <= at_ms and (not self.until_ms or at_ms < self.until_ms)


def pack(event: Event) -> dict[str, str]:
    """Return the fields of the event's entry in the stream, without empty ones."""
    fields = {
        "at_ms": str(event.at_ms),
        "kind": event.kind.value,
        "message": clean(event.message),
        "device": event.device,
        "target": event.target,
        "target_id": _text(event.target_id),
        "device_id": _text(event.device_id),
        "data": json.dumps(dict(event.data), default=str) if event.data else "",
    }

    return {name: text for name, text in fields.items() if text}


def unpack(fields: Mapping[str, str]) -> Event | None:
    """Return the event of an entry, or None for an entry that is no event of this version."""
    try:
        return Event(
            at_ms=_number(fields["at_ms"]),
            kind=Kind(fields["kind"]),
            message=clean(fields.get("message", "")),
            device=clean(fields.get("device", ""), NAME_LIMIT),
            target=clean(fields.get("target", ""), NAME_LIMIT),
            target_id=_optional_number(fields, "target_id"),
            device_id=_optional_number(fields, "device_id"),
            data=_data(fields.get("data", "{}")),
        )
    except (KeyError, ValueError, TypeError, RecursionError):
        return None


def _text(number: int | None) -> str:
    if number is None:
        return ""
    return str(number)


def _optional_number(fields: Mapping[str, str], name: str) -> int | None:
    if name not in fields:
        return None
    return _number(fields[name])


def _number(text: str) -> int:
    value = int(text)
    if not 0 <= value <= _MAX_INTEGER:
        raise ValueError(text)
    return value


def _data(text: str) -> dict[str, Any]:
    # A JSON column of PostgreSQL cannot hold this character.
    storable = text.replace("\\u0000", " ")
    data = json.loads(storable)
    if not isinstance(data, dict):
        raise TypeError(text)
    return data
