"""The middleware by itself: streams that outlive their login, and texts of the login path."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send

from poller import errors
from poller.domain.access.actor import Actor, ActorKind
from poller.web.access import access_control
from poller.web.access.access_control import AccessControl
from poller.web.access.access_policy import AccessPolicy
from poller.web.access.actor_finder import Visit

KIM = Actor("kim", ActorKind.TOKEN, "192.0.2.1")


class Finder:
    """Knows one actor, until a test forgets it."""

    policy = AccessPolicy()
    actor: Actor | None = KIM

    async def find(self, *_: object) -> Visit:
        if self.actor is None:
            raise errors.NotLoggedIn("the token is not valid")
        return Visit(self.actor)


def refuse(error: errors.PollerError, _request: object) -> PlainTextResponse:
    return PlainTextResponse(str(error), 401)


def request(finder: Finder, app: Any, path: str = "/api/stream", **headers: str) -> list[Message]:
    """The messages that a client gets."""
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b""}

    async def send(message: Message) -> None:
        sent.append(message)

    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    scope: Scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "query_string": b"x=1",
        "headers": raw,
        "client": ("192.0.2.1", 1),
        "scheme": "http",
        "server": ("127.0.0.1", 80),
    }
    middleware = AccessControl(app, finder, refuse)  # type: ignore[arg-type]
    asyncio.run(middleware(scope, receive, send))
    return sent


def test_a_stream_ends_with_its_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """The right is checked again while the stream is open; nothing is sent after its end."""
    monkeypatch.setattr(access_control, "CHECK_STREAM_S", -1.0)
    finder = Finder()

    async def stream(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"first", "more_body": True})
        finder.actor = None
        await send({"type": "http.response.body", "body": b"second", "more_body": True})
        await send({"type": "http.response.body", "body": b"third", "more_body": True})

    sent = request(finder, stream)
    assert [message.get("body") for message in sent] == [None, b"first", b""]
    assert sent[-1]["more_body"] is False


@pytest.mark.parametrize(
    ("path", "location"),
    [
        ("/", "./login?next=%3Fx%3D1"),
        ("/jobs", "./login?next=jobs%3Fx%3D1"),
        ("/devices/sw1", "../login?next=devices%2Fsw1%3Fx%3D1"),
        ("//evil.example/x", "../../login?next=evil.example%2Fx%3Fx%3D1"),
    ],
)
def test_a_browser_is_sent_to_the_login_page_of_this_site(path: str, location: str) -> None:
    """The address is relative, and remembers the page that was asked for."""
    finder = Finder()

    async def find(*_: object) -> Visit:
        return Visit(None)

    finder.find = find  # type: ignore[method-assign]
    [start, _] = request(finder, None, path, accept="text/html")
    assert start["status"] == 303
    assert dict(start["headers"])[b"location"].decode() == location
