"""The scope and the instant of a plan as people write them, in a terminal and in a form."""

from __future__ import annotations

from datetime import UTC, datetime

from poller import errors
from poller.domain.jobs.job_run import GLOBAL


def parse_scope(field: str, text: str) -> tuple[str, str]:
    """The kind and id of `KIND:ID`, or of `global`. Raises InvalidInput, which names the field."""
    if text == GLOBAL:
        return GLOBAL, GLOBAL
    kind, colon, key = text.partition(":")
    if not (kind and colon and key):
        raise errors.InvalidInput(
            f'{field}: "{text}" is no scope', hint="write KIND:ID, such as site:ams", field=field
        )
    return kind, key


def parse_instant_ms(field: str, text: str) -> int:
    """An instant in ms; UTC unless the text has an offset. Raises InvalidInput."""
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError:
        raise errors.InvalidInput(
            f'{field}: "{text}" is no time', hint="write 2026-11-18T02:00:00Z", field=field
        ) from None
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    return round(at.timestamp() * 1000)
