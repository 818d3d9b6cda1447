"""An event as JSON, for the command line and the API."""

from __future__ import annotations

from typing import Any

from poller.domain.record.event_kinds import Event
from poller.presentation import formatting


def item(event: Event) -> dict[str, Any]:
    """The fields of an event; `at` is RFC 3339 in UTC, to the second."""
    return {
        "at": formatting.instant(event.at_ms),
        "kind": event.kind.value,
        "device": event.device,
        "target": event.target,
        "device_id": event.device_id,
        "target_id": event.target_id,
        "message": event.message,
        "data": dict(event.data),
    }
