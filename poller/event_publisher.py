"""Tell everybody what happened: one log line each, and one entry each in the stream that the page, the command
line and others follow. The leader copies the stream to SQL (beat/event_recorder.py), so this needs no database.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from poller import errors
from poller.domain.failures.outcome import clean
from poller.domain.record.event_kinds import Event
from poller.observability import logs

if TYPE_CHECKING:
    from poller.bootstrap import Services

log = logs.get(__name__)

#: How parts of a role tell what they noticed, without knowing who listens.
Note = Callable[[Event], None]


def emit(services: Services, happened: Sequence[Event]) -> None:
    """Log and publish them, in one round trip. Never raises: what cannot be published is in the log, which says so."""
    try:
        write_lines(happened)
        publish(services, happened)
    except errors.StoreError as error:
        log.error("events_not_published", count=len(happened), error=str(error))
    except Exception:
        log.exception("events_not_published", count=len(happened))


def only_log(event: Event) -> None:
    """For those who have nobody to tell."""
    write_lines([event])


def now_ms() -> int:
    """This host's clock, for what happens when the server's cannot be asked."""
    return time.time_ns() // 1_000_000


def write_lines(happened: Sequence[Event]) -> None:
    """One structured line each, named after its kind."""
    for event in happened:
        say = log.warning if event.kind.is_bad else log.info
        facts = {"device": event.device, "target": event.target, "target_id": event.target_id}
        say(
            event.kind.value,
            message=clean(event.message),
            **{k: v for k, v in facts.items() if v},
            **_extra(event),
        )


def publish(services: Services, happened: Sequence[Event]) -> None:
    """The stream only. Raises StoreError."""
    if happened:
        from poller.state.cluster import event_stream as stream

        safe = [_without_secrets(services, event) for event in happened]
        stream.publish(services.redis, services.keys, safe, services.settings.events_length)


def _without_secrets(services: Services, event: Event) -> Event:
    fields = services.redactor.fields({"message": event.message, "data": dict(event.data)})
    return replace(event, message=fields["message"], data=fields["data"])


def _extra(event: Event) -> dict[str, object]:
    """The data; a name that means something to the log gets a tail, so that nothing is hidden and nothing fails."""
    return {f"{name}_" if name in _TAKEN else name: value for name, value in event.data.items()}


_LINE = ("event", "message", "device", "target", "target_id", "level", "logger", "timestamp")
_TAKEN = frozenset((*_LINE, "self", "exc_info", "stack_info", "stacklevel", "extra"))
