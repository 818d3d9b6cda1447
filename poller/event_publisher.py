"""Publishes events: one log line each, and one entry each in the stream that the page and the
command line follow. The leader copies the stream to SQL (beat/event_recorder.py).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from poller import errors
from poller.domain.failures.outcome import clean
from poller.domain.record.event_kinds import Event
from poller.observability import logs

if TYPE_CHECKING:
    from poller.bootstrap import Services
    from poller.state.board.board_values import Report

log = logs.get(__name__)

_LINE_FIELDS = ("event", "message", "device", "target", "target_id", "level", "logger", "timestamp")
_CALL_ARGUMENTS = ("self", "exc_info", "stack_info", "stacklevel", "extra")
_RESERVED = frozenset((*_LINE_FIELDS, *_CALL_ARGUMENTS))


class EventLog(Protocol):
    """Accepts events of the parts of a role; beat/event_recorder.py is the real one."""

    def record(self, event: Event) -> None:
        """Log the event, and publish it soon. Never raises."""


class LogOnly:
    """An EventLog that writes log lines and publishes nothing."""

    def record(self, event: Event) -> None:
        write_lines([event])


def emit(services: Services, events: Sequence[Event]) -> None:
    """Log and publish events in one round trip. Never raises: a failure to publish is logged."""
    try:
        write_lines(events)
        publish(services, events)
    except errors.StoreError as error:
        log.error("events_not_published", count=len(events), error=str(error))
    except Exception:  # door: the caller has done its work, which an event must not fail
        log.exception("events_not_published", count=len(events))


def now_ms() -> int:
    """This host's clock, for events at a time when the server cannot be asked for its clock."""
    return time.time_ns() // 1_000_000


def write_lines(events: Sequence[Event]) -> None:
    """Write one structured log line per event, named after its kind."""
    for event in events:
        write = log.warning if event.kind.is_bad else log.info
        write(event.kind.value, message=clean(event.message), **_facts(event))


def publish(services: Services, events: Sequence[Event]) -> None:
    """Append events to the stream. Raises StoreError."""
    if events:
        from poller.state.cluster import event_stream

        safe = [_without_secrets(services, event) for event in events]
        length = services.settings.events_length
        event_stream.publish(services.redis, services.keys, safe, length)


def safe_reports(services: Services, reports: Sequence[Report]) -> list[Report]:
    """Return reports whose events contain no secret. The board publishes them as they are."""

    def safe(event: Event | None) -> Event | None:
        return _without_secrets(services, event) if event else None

    return [
        report._replace(
            down=safe(report.down),
            up=safe(report.up),
            failing=safe(report.failing),
            recovered=safe(report.recovered),
        )
        for report in reports
    ]


def _without_secrets(services: Services, event: Event) -> Event:
    fields = services.redactor.fields({"message": event.message, "data": dict(event.data)})
    return replace(event, message=fields["message"], data=fields["data"])


def _facts(event: Event) -> dict[str, object]:
    """Names and data of an event; "_" is appended to a data name that the log line reserves."""
    names = {"device": event.device, "target": event.target, "target_id": event.target_id}
    facts: dict[str, object] = {name: value for name, value in names.items() if value}
    for name, value in event.data.items():
        safe_name = f"{name}_" if name in _RESERVED else name
        facts[safe_name] = value
    return facts
