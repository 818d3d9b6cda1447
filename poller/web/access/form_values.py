"""The values of a form that a page sent, with fields that come more than once."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import parse_qs

from fastapi import Depends, Request

from poller import errors
from poller.web.access import forgery


class FormValues:
    """The fields of one form. A missing field is empty."""

    def __init__(self, fields: dict[str, list[str]]) -> None:
        self._fields = fields

    def one(self, name: str) -> str:
        """The first value of a field."""
        return self._fields.get(name, [""])[0].strip()

    def as_typed(self, name: str) -> str:
        """The first value of a field with its blanks: a secret may begin or end with one."""
        return self._fields.get(name, [""])[0]

    def all(self, name: str) -> list[str]:
        """Every value of a field."""
        return self._fields.get(name, [])

    def number(self, name: str) -> int | None:
        """A whole number; None for a missing one. Raises InvalidInput, which names the field."""
        text = self.one(name)
        if not text:
            return None
        if not (text.isascii() and text.isdigit()) or len(text) > 9:
            raise errors.InvalidInput(f'{name}: "{text[:20]}" is not a whole number')
        return int(text)


async def _sent(request: Request) -> FormValues:
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != forgery.FORM:
        raise errors.InvalidInput("this is a form of a page", hint="programs use /api/v1")
    body = await forgery.read_body(request.receive, forgery.largest_form(request.scope))
    try:
        found = parse_qs(body.decode(), keep_blank_values=True, max_num_fields=forgery.MOST_FIELDS)
    except ValueError:
        raise errors.InvalidInput("the form cannot be read") from None
    for values in found.values():
        if any("\0" in value for value in values):
            raise errors.InvalidInput("the form has a NUL character", hint="leave it out")
    return FormValues(found)


#: A parameter of a route that a form is sent to.
SentForm = Annotated[FormValues, Depends(_sent)]
