"""The tag of a row: a short text that changes with every field that people edit."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from poller import errors

ANY_TAG = "*"


def row_tag(fields: Mapping[str, Any]) -> str:
    """Return the tag of these fields."""
    text = json.dumps(fields, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def refuse_changed(noun: str, name: str, present: str, expected: str | None) -> None:
    """Raise EditConflict if an edit was made for another version of the row than the present."""
    if expected in (None, ANY_TAG, present):
        return
    raise errors.EditConflict(
        f'{noun} "{name}" was changed since it was read; nothing was changed now',
        hint="read it again, then repeat the edit with the new ETag",
    )
