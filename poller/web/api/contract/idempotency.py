"""Idempotency-Key: a POST that is sent again has its first response, and acts once.

The response is kept in Redis for a day, with the fingerprint of the request. Routes whose request
or response holds a secret refuse the header: a secret could be guessed from a fingerprint.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool

from poller import errors
from poller.bootstrap import Services
from poller.state.requests import request_records

HEADER = "Idempotency-Key"
LONGEST_KEY = 200
#: A larger response is not kept; the request is then carried out again.
LARGEST_BODY = 65_536
#: Marks a route whose request or response holds a secret: `openapi_extra=HOLDS_SECRET`.
HOLDS_SECRET = {"x-holds-secret": True}

#: The header in the OpenAPI document of a POST.
PARAMETER: dict[str, Any] = {
    "name": HEADER,
    "in": "header",
    "required": False,
    "schema": {"type": "string", "maxLength": LONGEST_KEY, "minLength": 1},
    "description": "A unique text: the same request with it acts once, for a day.",
}


class IdempotentRoute(APIRoute):
    """A route whose POST acts once for each key of an actor."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def once(request: Request) -> Response:
            key = request.headers.get(HEADER)
            if request.method != "POST" or key is None:
                return await handle(request)
            _check(key, self.openapi_extra or {})
            return await _once(request, key, handle)

        return once


def _check(key: str, extra: dict[str, Any]) -> None:
    """Raise InvalidInput for a key that cannot be used."""
    if "x-holds-secret" in extra:
        raise errors.InvalidInput(
            f"{HEADER}: the request or its response holds a secret, which is not kept",
            hint="leave the header out; a name that is taken is refused anyway",
        )
    if not 1 <= len(key) <= LONGEST_KEY:
        raise errors.InvalidInput(f"{HEADER}: 1 to {LONGEST_KEY} characters are allowed")


async def _once(
    request: Request, key: str, handle: Callable[[Request], Coroutine[Any, Any, Response]]
) -> Response:
    services: Services = request.app.state.services
    actor = getattr(request.state, "actor", None)
    if actor is None:
        return await handle(request)  # which refuses it
    fingerprint = await _fingerprint(request)
    name = _hash(actor.kind.value, actor.name, request.method, request.url.path, key)
    store = (services.redis, services.keys, name)
    kept = await run_in_threadpool(request_records.begin, *store, fingerprint)
    if kept is not None:
        return _again(kept, fingerprint)

    try:
        response = await handle(request)
    except BaseException:
        await run_in_threadpool(request_records.forget, *store)
        raise
    if response.status_code < 400 and len(response.body) <= LARGEST_BODY:
        record = {
            "fingerprint": fingerprint,
            "status": response.status_code,
            "body": bytes(response.body).decode(),
        }
        await run_in_threadpool(request_records.finish, *store, json.dumps(record))
    else:
        await run_in_threadpool(request_records.forget, *store)
    return response


def _again(kept: str, fingerprint: str) -> Response:
    """The first response, or a refusal: the first request still runs, or was another one."""
    record = json.loads(kept)
    if record["fingerprint"] != fingerprint:
        raise errors.InvalidInput(
            f"{HEADER}: another request had this key", hint="use a new key for a new request"
        )
    if "status" not in record:
        raise errors.AlreadyRunning(
            "the first request with this Idempotency-Key still runs", hint="send it again later"
        )
    headers = {"Idempotent-Replayed": "true"}
    body = record["body"]
    return Response(body, record["status"], headers, media_type="application/json" if body else "")


async def _fingerprint(request: Request) -> str:
    digest = hashlib.sha256(request.url.query.encode() + b"\0")
    digest.update(await request.body())
    return digest.hexdigest()


def _hash(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
