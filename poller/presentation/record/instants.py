"""Instants of JSON documents: RFC 3339 in UTC, to the second; null for "never"."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from pydantic import PlainSerializer, WithJsonSchema

#: The last second of the year 9999: later instants cannot be written.
LAST_MS = 253_402_300_799_000


def rfc3339(at: datetime) -> str:
    """Return an instant as `2026-11-16T12:00:00Z`."""
    return at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def of_ms(ms: int | None) -> datetime | None:
    """Return an instant in UTC; None for None, and for 0, which stands for "never"."""
    if not ms:
        return None
    return datetime.fromtimestamp(min(ms, LAST_MS) / 1000, UTC)


#: A datetime whose JSON is a text to the second.
Instant = Annotated[
    datetime,
    PlainSerializer(rfc3339, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
