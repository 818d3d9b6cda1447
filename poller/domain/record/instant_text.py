"""Instants as people and programs write them: RFC 3339, or a duration before or after now."""

from __future__ import annotations

from datetime import UTC, datetime

from poller import errors
from poller.domain.inventory import duration


def parse_ms(field: str, text: str, now_ms: int) -> int:
    """Return an instant in UTC milliseconds, at least 0. Raises InvalidInput, naming the field."""
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError:
        return max(0, now_ms - _length_ms(field, text))
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    return max(0, int(at.timestamp() * 1000))


def _length_ms(field: str, text: str) -> int:
    try:
        return duration.parse_ms(text)
    except errors.InvalidInput as error:
        hint = f"{error.hint}, or an instant such as 2026-11-16T12:00:00Z"
        raise errors.InvalidInput(f"{field}: {error.message}", hint=hint) from None


def ahead_ms(field: str, text: str, now_ms: int) -> int:
    """Return an instant in UTC milliseconds; a duration is one after now. Raises InvalidInput."""
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError:
        return now_ms + _length_ms(field, text)
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    return max(0, int(at.timestamp() * 1000))
