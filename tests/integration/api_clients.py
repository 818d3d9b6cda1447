"""HTTP clients of the API on real stores, each with the rights that a test gives it."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Iterable

from starlette.types import ASGIApp, Receive, Scope, Send

from poller.bootstrap import Services
from poller.domain.access import scopes
from poller.domain.access.actor import Actor, ActorKind
from poller.domain.access.scopes import Scope as AccessScope
from poller.web import web_process
from poller.web.routes import create_app

with warnings.catch_warnings():
    # Starlette's test client wants a newer httpx than FastAPI requires.
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient

EVERYTHING = (AccessScope.ADMIN,)


class AsActor:
    """Answers every request as one actor, inside all other middleware."""

    def __init__(self, app: ASGIApp, actor: Actor | None) -> None:
        self._app = app
        self._actor = actor

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope.setdefault("state", {})["actor"] = self._actor
        await self._app(scope, receive, send)


def client(
    services: Services,
    given: Iterable[AccessScope] | None = EVERYTHING,
    site: str | None = None,
    ended: bool = False,
) -> TestClient:
    """A client of the API with these scopes; None is a caller without a login.

    With `ended` the process is about to stop, so that streams end at once.
    """
    stopping = asyncio.Event()
    if ended:
        stopping.set()
    actor = None
    if given is not None:
        actor = Actor("ci", ActorKind.TOKEN, "127.0.0.1", scopes.granted(given), site)
    app = create_app(web_process.backend_queries(services), stopping, services=services)
    app.add_middleware(AsActor, actor=actor)
    app.user_middleware.append(app.user_middleware.pop(0))  # the innermost decides
    return TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False)
