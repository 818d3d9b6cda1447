"""Pages of a list: a bounded number of items, and an opaque cursor to the next page."""

from __future__ import annotations

import base64
import binascii
import bisect
import json
from collections.abc import Sequence
from typing import Annotated, Any, Generic, TypeVar

from fastapi import Query, Request, Response
from pydantic import BaseModel, Field

from poller import errors

DEFAULT_LIMIT = 50
MOST_ITEMS = 500
_LONGEST_CURSOR = 2_000
_INTEGERS = 2**63  # beyond those of a BIGINT column

Item = TypeVar("Item")

Limit = Annotated[int, Query(ge=1, le=MOST_ITEMS, description="Most items of one page.")]
Cursor = Annotated[
    str,
    Query(max_length=_LONGEST_CURSOR, description="`next` of the page before; empty: the first."),
]


class Page(BaseModel, Generic[Item]):
    """One page of a list, in the order of its key."""

    items: list[Item]
    next: str | None = Field(None, description="The cursor of the next page; null on the last.")


def encode(key: Sequence[str | int] | None) -> str | None:
    """The cursor of the page after this key; None after the last page."""
    if key is None:
        return None
    text = json.dumps(list(key), separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode(cursor: str, *kinds: type) -> list[Any] | None:
    """The key of a cursor, with one value of each kind; None for the first page.

    Raises InvalidInput for a text that is not a cursor of this list.
    """
    if not cursor:
        return None
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        key = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, RecursionError):
        key = None
    is_list = isinstance(key, list) and len(key) == len(kinds)
    if not is_list or not all(map(_is_storable, key, kinds)):
        hint = "use `next` of the page before, unchanged, with the same filter"
        raise errors.InvalidInput("cursor: this is not a cursor of this list", hint=hint)
    found: list[Any] = key
    return found


def _is_storable(part: Any, kind: type) -> bool:
    """Whether a part of a key has its kind, and a database can compare with it."""
    if type(part) is not kind:
        return False
    if isinstance(part, int):
        return abs(part) < _INTEGERS
    return not any(char == "\0" or "\ud800" <= char <= "\udfff" for char in str(part))


def after_name(names: Sequence[str], limit: int, cursor: str) -> tuple[int, int, str | None]:
    """Return where a page of a short list begins and ends, and the cursor of the next page.

    The names are in order, and each is there once. Raises InvalidInput for a wrong cursor.
    """
    key = decode(cursor, str)
    start = 0 if key is None else bisect.bisect_right(names, key[0])
    end = min(start + limit, len(names))
    last = [names[end - 1]] if start < end < len(names) else None
    return start, end, encode(last)


def link_next(request: Request, response: Response, cursor: str | None) -> None:
    """Add the address of the next page as the header `Link`. It is relative to this page."""
    if cursor is not None:
        query = request.url.include_query_params(cursor=cursor).query
        response.headers["Link"] = f'<?{query}>; rel="next"'
