"""The middleware that lets in who may come in. Whatever is not public needs a login or a token.

The right that a route needs is declared by the route itself (contract/needs.py).
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, MutableMapping
from typing import Any
from urllib.parse import quote

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from poller import errors
from poller.domain.access.actor import ActorKind
from poller.security import token_values
from poller.web.access import forgery, form_cookies, request_origin, visitor
from poller.web.access.actor_finder import ActorFinder, Visit
from poller.web.access.request_origin import RequestOrigin

LOGIN = "/login"
LOGOUT = "/logout"
#: Paths without a login: probes, and the way to log in.
PUBLIC = frozenset(
    (
        "/healthz",
        "/readyz",
        "/-/healthy",
        LOGIN,
        "/login/provider",
        "/login/provider/callback",
        LOGOUT,
    )
)
STATIC = "/static/"
#: The right to an open stream is checked this often.
CHECK_STREAM_S = 10.0
_TOKEN_IN_URL = re.compile(rb"poller_[A-Za-z0-9_-]{43}")

Refuse = Callable[[errors.PollerError, Request], Response]


class AccessControl:
    """Finds the actor of each request, or refuses the request. Plain ASGI, for streams."""

    def __init__(self, app: ASGIApp, finder: ActorFinder, refuse: Refuse) -> None:
        self._app = app
        self._finder = finder
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].startswith(STATIC):
            await self._app(scope, receive, send)
            return

        headers = Headers(scope=scope)
        origin = request_origin.of_request(scope, headers, self._finder.policy)
        state = scope.setdefault("state", {})
        state["actor"] = None
        state["origin"] = origin
        path = scope["path"]
        is_public = path in PUBLIC
        try:
            _refuse_token_in_url(scope)
            # A log-out must end the session it was sent for, so it is not for nobody.
            visit = await self._visit(headers, origin, is_public and path != LOGOUT)
            # The login form has no session yet, or that of an older login.
            forged_by = Visit(None) if path == LOGIN else visit
            form_value = form_cookies.value(headers, origin.is_https)
            receive = await forgery.check(scope, headers, receive, forged_by, form_value)
        except errors.PollerError as error:
            response = self._refuse(error, Request(scope))
            await response(scope, receive, send)
            return

        if _needs_form_cookie(visit) and not form_value and _is_page(Request(scope)):
            form_value = token_values.new()
            send = form_cookies.storing(send, form_value, origin.is_https)
        _remember(state, visit, form_value)
        if visit.actor is None and not is_public:
            await self._ask_for_login(scope, receive, send)
            return
        if visit.actor is not None:
            send = self._while_allowed(headers, origin, send)
        await self._app(scope, receive, send)

    async def _visit(self, headers: Headers, origin: RequestOrigin, is_public: bool) -> Visit:
        try:
            return await self._finder.find(headers, origin)
        except errors.PollerError:
            if is_public:
                return Visit(None)
            raise

    async def _ask_for_login(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send a browser to the login page, and tell a program that it needs a token."""
        request = Request(scope)
        if _is_page(request):
            response: Response = RedirectResponse(_login_path(scope), status_code=303)
        else:
            error = errors.NotLoggedIn(
                "this needs a login or a token",
                hint="send `Authorization: Bearer TOKEN`; `poller token add` makes a token",
            )
            response = self._refuse(error, request)
        await response(scope, receive, send)

    def _while_allowed(self, headers: Headers, origin: RequestOrigin, send: Send) -> Send:
        """End a response that takes long, such as a stream, when its token or session has ended."""
        checked_mono = time.monotonic()
        is_over = False

        async def checked(message: Message) -> None:
            nonlocal checked_mono, is_over
            if is_over:
                return
            now_mono = time.monotonic()
            if now_mono > checked_mono + CHECK_STREAM_S:
                checked_mono = now_mono
                visit = await self._visit(headers, origin, is_public=True)
                is_over = visit.actor is None
            if is_over and message["type"] == "http.response.body":
                message = {"type": "http.response.body", "body": b"", "more_body": False}
            await send(message)

        return checked


def _remember(state: MutableMapping[str, Any], visit: Visit, form_value: str) -> None:
    state["actor"] = visit.actor
    state["session_value"] = visit.session_value
    has_session = bool(visit.session_value)
    visitor.welcome(visit.actor, visit.session_value or form_value, has_session)


def _needs_form_cookie(visit: Visit) -> bool:
    """Whether a browser has rights without a session."""
    return visit.actor is not None and visit.actor.kind in (ActorKind.LOCAL, ActorKind.PROXY)


def _refuse_token_in_url(scope: Scope) -> None:
    """Raise InvalidInput for a token in the address, which logs and histories keep."""
    if _TOKEN_IN_URL.search(scope.get("query_string", b"")):
        raise errors.InvalidInput(
            "a token must not be in the address: it is now in logs",
            hint="remove this token (poller token rm NAME), and send a new one as a header",
        )


def _is_page(request: Request) -> bool:
    accepts_html = "text/html" in request.headers.get("accept", "")
    return accepts_html and request.method == "GET" and not request.url.path.startswith("/api/")


def _login_path(scope: Scope) -> str:
    """The login page, relative to this path: the site may be served below another one."""
    path = scope["path"]
    query = scope.get("query_string", b"").decode("latin-1")
    wanted = path.lstrip("/") + (f"?{query}" if query else "")
    root = "../" * (path.count("/") - 1) or "./"
    return f"{root}login?next={quote(wanted, safe='')}" if wanted else f"{root}login"
