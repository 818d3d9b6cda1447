"""Refuses changes that another site lets a browser send with the rights of its user.

A session must show its form token. Where a browser has rights without a session, on loopback and
behind a proxy with a login, a form must show the token that follows from the cookie of forms, and
any other body must be of a type that no form of another site can send.
"""

from __future__ import annotations

from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope

from poller import errors
from poller.domain.access import same_site
from poller.domain.access.actor import ActorKind
from poller.security import token_values
from poller.web.access.actor_finder import Visit

HEADER = "X-CSRF-Token"
FIELD = "csrf_token"
FORM = "application/x-www-form-urlencoded"
LARGEST_FORM = 65_536
#: Forms with a larger limit: the text of a whole inventory file.
LARGER_FORMS = {"/devices/-/import": 4_194_304}
#: Fields of one form: a list of 250 devices has a mark for each.
MOST_FIELDS = 400
#: Types that a form of any site can send without being asked. "" is a body without a type.
_SIMPLE = (FORM, "multipart/form-data", "text/plain", "")


async def check(
    scope: Scope, headers: Headers, receive: Receive, visit: Visit, form_value: str = ""
) -> Receive:
    """Refuse a forged change; return what to read the body from. Raises NotAllowed.

    A token is sent by a program on purpose, never by a browser on its own. `form_value` is that of
    the cookie of forms.
    """
    actor = visit.actor
    if scope["method"] in same_site.SAFE_METHODS:
        return receive
    if actor is not None and actor.kind is ActorKind.TOKEN:
        return receive
    _refuse_foreign(headers)
    if visit.session_value:
        return await _check_token(scope, headers, receive, visit.session_value)
    if actor is not None and form_value and _media_type(headers) == FORM:
        return await _check_token(scope, headers, receive, form_value)
    if actor is not None and _has_body(headers) and _media_type(headers) in _SIMPLE:
        raise errors.NotAllowed(
            "this body could be sent by a form of any web site",
            hint="send it with Content-Type: application/json",
        )
    return receive


def _refuse_foreign(headers: Headers) -> None:
    fetch_site = headers.get("sec-fetch-site", "")
    if same_site.is_foreign(fetch_site, headers.get("origin", ""), headers.get("host", "")):
        raise errors.NotAllowed(
            "another web site sent this request", hint="open the page of poller itself"
        )


async def _check_token(scope: Scope, headers: Headers, receive: Receive, value: str) -> Receive:
    """Refuse a request without the form token that follows from a value of the browser."""
    sent = headers.get(HEADER, "")
    if not sent and _media_type(headers) == FORM:
        body = await read_body(receive, largest_form(scope))
        fields = form_fields(body)
        sent = fields.get(FIELD, "")
        receive = _replayed(body)
    if not token_values.is_form_token(value, sent):
        raise errors.NotAllowed(
            "the request does not show that it comes from a page of this login",
            hint=f"send csrf_token of /api/v1/session as the header {HEADER}",
        )
    return receive


def largest_form(scope: Scope) -> int:
    """Return the largest form of this address, in bytes."""
    return LARGER_FORMS.get(scope["path"], LARGEST_FORM)


async def read_body(receive: Receive, largest: int) -> bytes:
    """Read a whole body. Raises InvalidInput if it is too large."""
    pieces = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            break
        piece = message.get("body", b"")
        size += len(piece)
        if size > largest:
            raise errors.InvalidInput(f"the form has more than {largest:,} bytes")
        pieces.append(piece)
        if not message.get("more_body", False):
            break
    return b"".join(pieces)


def form_fields(body: bytes) -> dict[str, str]:
    """Return the fields of a form, each with its first value. Raises InvalidInput."""
    try:
        found = parse_qs(body.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError:
        raise errors.InvalidInput("this is not a form") from None
    return {name: values[0] for name, values in found.items()}


def _replayed(body: bytes) -> Receive:
    """Return a source of a body that was read already."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        return messages.pop() if messages else {"type": "http.disconnect"}

    return receive


def _has_body(headers: Headers) -> bool:
    return headers.get("content-length", "0") != "0" or "transfer-encoding" in headers


def _media_type(headers: Headers) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()
