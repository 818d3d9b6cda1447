"""The cookie of a session. With TLS its name binds it to this host, so that no other sets it."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.responses import Response

from poller.security import token_values

PLAIN = "poller_session"
#: Browsers accept this name only over TLS, for the whole host, and from the host itself.
SECURE = "__Host-poller_session"


def name(is_https: bool) -> str:
    """Return the name of the cookie."""
    return SECURE if is_https else PLAIN


def value(headers: Headers, is_https: bool) -> str:
    """Return the value that a request sends; "" without one."""
    found = cookie_parser(headers.get("cookie", "")).get(name(is_https), "")
    return found if token_values.is_value(found) else ""


def store(response: Response, session_value: str, is_https: bool, lives_s: int) -> None:
    """Let the browser send the value with every request until the session ends."""
    response.set_cookie(
        name(is_https),
        session_value,
        max_age=lives_s,
        path="/",
        secure=is_https,
        httponly=True,
        samesite="lax",
    )


def clear(response: Response, is_https: bool) -> None:
    """Let the browser forget the value."""
    response.delete_cookie(name(is_https), path="/", secure=is_https, httponly=True, samesite="lax")
