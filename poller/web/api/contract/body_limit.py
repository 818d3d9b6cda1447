"""The largest body of a request, so that no caller fills the memory."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from poller import errors
from poller.web.access import forgery
from poller.web.api.contract import problems

MOST_BYTES = 1_048_576
#: Paths with a larger limit: whole inventory files.
LARGER = {f"{problems.PREFIX}/imports": 33_554_432, **forgery.LARGER_FORMS}
TOO_LARGE = 413


class BodyLimit:
    """Refuses a body that is too large, and one whose length is ambiguous. Plain ASGI."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        limit = LARGER.get(scope["path"], MOST_BYTES)
        headers = Headers(scope=scope)
        declared = headers.get("content-length", "")
        if declared and "transfer-encoding" in headers:
            await _ambiguous()(scope, receive, send)
            return
        if declared.isdecimal() and int(declared) > limit:
            await _refusal(limit)(scope, receive, send)
            return

        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > limit:
                raise HTTPException(TOO_LARGE)  # FastAPI lets no other error of a body through
            return message

        await self._app(scope, counted, send)


def _ambiguous() -> ASGIApp:
    """The refusal of a body with two lengths. A proxy that counts by the other one would take the
    rest for a request of its own, so the connection ends.
    """
    detail = "the request has both Content-Length and Transfer-Encoding"
    close = {"Connection": "close"}
    return problems.respond(400, errors.InvalidInput.code, detail, hint="send one", headers=close)


def _refusal(limit: int) -> ASGIApp:
    detail = f"the body has more than {limit:,} bytes"
    return problems.respond(TOO_LARGE, errors.InvalidInput.code, detail, hint="send it in parts")
