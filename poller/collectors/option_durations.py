"""Durations in the options of collectors: `1.5`, `500ms` or `2m`, as everywhere else; seconds inside."""

from __future__ import annotations

from typing import Any

from poller import errors
from poller.domain.inventory import duration


def seconds(value: Any) -> Any:
    """For a validator that runs before pydantic's own: a text becomes seconds, anything else is left to pydantic."""
    if not isinstance(value, str):
        return value
    try:
        return duration.parse_ms(value) / 1000
    except errors.InvalidInput as error:
        raise ValueError(f"{error}; {error.hint}") from None
