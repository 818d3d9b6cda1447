"""ETag and If-Match: an edit that was made for an older version of a row is refused."""

from __future__ import annotations

from typing import Annotated

from fastapi import Header, Response

from poller import errors
from poller.domain.inventory import row_tag

IfMatch = Annotated[
    str | None,
    Header(
        max_length=200,
        description="ETag of the version that the edit is for; 412 if it is not the present one.",
    ),
]


def expected(header: str | None) -> str | None:
    """The tag of an If-Match header; None without the header. Raises InvalidInput."""
    if header is None or header.strip() == row_tag.ANY_TAG:
        return None
    text = header.strip().removeprefix("W/")
    quoted = len(text) > 1 and text.startswith('"') and text.endswith('"')
    if not quoted or '"' in text[1:-1]:
        raise errors.InvalidInput(
            "If-Match: this is not an ETag", hint="send the ETag of the last GET, with its quotes"
        )
    return text[1:-1]


def set_tag(response: Response, tag: str) -> None:
    """Send the tag of a row as its ETag."""
    response.headers["ETag"] = f'"{tag}"'
