"""The cookie that form tokens follow from where a browser has rights without a session.

On loopback and behind a proxy with a login there is no session value that only the browser knows.
A random cookie takes its place: a page of another site can neither read it nor the form token.
"""

from __future__ import annotations

from http.cookies import SimpleCookie

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.types import Message, Send

from poller.security import token_values

PLAIN = "poller_form"
#: Browsers accept this name only over TLS, for the whole host, and from the host itself.
SECURE = "__Host-poller_form"


def name(is_https: bool) -> str:
    """Return the name of the cookie."""
    return SECURE if is_https else PLAIN


def value(headers: Headers, is_https: bool) -> str:
    """Return the value that a request sends; "" without one."""
    found = cookie_parser(headers.get("cookie", "")).get(name(is_https), "")
    return found if token_values.is_value(found) else ""


def storing(send: Send, form_value: str, is_https: bool) -> Send:
    """Add a new cookie to a response."""
    cookie = SimpleCookie({name(is_https): form_value})
    morsel = cookie[name(is_https)]
    for attribute, given in (("path", "/"), ("samesite", "lax"), ("httponly", True)):
        morsel[attribute] = given
    morsel["secure"] = is_https
    header = cookie.output(header="").strip()

    async def send_with_cookie(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).append("Set-Cookie", header)
        await send(message)

    return send_with_cookie
