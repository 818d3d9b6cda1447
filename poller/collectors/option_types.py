"""Types for the fields of options models, shared by the built-in collectors."""

from __future__ import annotations

import os
from typing import Annotated, Any

from pydantic import BeforeValidator

from poller import errors
from poller.domain.inventory import duration


def parse_seconds(value: Any) -> Any:
    """Return `500ms` or `2m` as seconds, before pydantic checks the number."""
    if not isinstance(value, str):
        return value
    try:
        return duration.parse_ms(value) / 1000
    except errors.InvalidInput as error:
        raise ValueError(f"{error}; {error.hint}") from None


def absolute_path(path: str) -> str:
    """Return the absolute path: a worker has another working directory than the operator."""
    return os.path.abspath(os.path.expanduser(path)) if path else ""


#: A duration, written `1.5`, `500ms` or `2m`; a float of seconds in the model.
Seconds = Annotated[float, BeforeValidator(parse_seconds)]
