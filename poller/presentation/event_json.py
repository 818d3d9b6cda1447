"""An event as JSON, for the command line and the API."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from poller.domain.record.event_kinds import Event
from poller.presentation import formatting


class EventItem(BaseModel):
    """One change. Names are those of that moment."""

    at: str = Field(json_schema_extra={"format": "date-time"})
    kind: str = Field(description="In the past tense, such as `device_went_down`.")
    device: str
    target: str
    device_id: int | None
    target_id: int | None
    message: str
    data: dict[str, Any] = Field(description="More about the change, for programs.")


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
