"""Idempotency-Key: a POST that is sent again has its first response, and acts once.

The response is kept in Redis for a day, with the fingerprint of the request. A request whose
process died may have acted, so its key does not act again. Routes whose request
or response holds a secret refuse the header: a secret could be guessed from a fingerprint.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from functools import partial
from http import HTTPStatus
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from poller import errors
from poller.bootstrap import Services
from poller.observability import logs
from poller.state.requests import request_records
from poller.state.requests.request_records import KeptRequest, RequestRecord

log = logs.get(__name__)

HEADER = "Idempotency-Key"
LONGEST_KEY = 200
#: Of a larger response the status alone is kept.
LARGEST_BODY = 65_536
#: Errors of a request that did not act, or that may act again: it can be repeated with its key.
_REFUSALS = (errors.PollerError, HTTPException, RequestValidationError)
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
    record = RequestRecord(services.redis, services.keys, name, secrets.token_hex(8))
    kept = await run_in_threadpool(record.begin, fingerprint)
    if kept is not None:
        return _again(kept, fingerprint)

    try:
        async with _extending(record):
            response = await handle(request)
    except _REFUSALS:
        await _note(record.forget)
        raise
    except BaseException:
        await _note(record.give_up)
        raise
    if response.status_code < HTTPStatus.BAD_REQUEST:
        body = bytes(response.body).decode() if len(response.body) <= LARGEST_BODY else None
        await _note(partial(record.finish, fingerprint, response.status_code, body))
    else:
        await _note(record.forget)
    return response


@asynccontextmanager
async def _extending(record: RequestRecord) -> AsyncIterator[None]:
    """Say that a request runs while it does."""

    async def extend() -> None:
        while True:
            await asyncio.sleep(request_records.LEASE_S / 3)
            await _note(record.extend)

    extending = asyncio.create_task(extend())
    try:
        yield
    finally:
        extending.cancel()
        with suppress(asyncio.CancelledError):
            await extending


async def _note(change: Callable[[], None]) -> None:
    """Change the record. A missing Redis is logged: the request has its own result."""
    try:
        await run_in_threadpool(change)
    except errors.StoreError as error:
        log.warning("request_record_not_kept", error=str(error))


def _again(kept: KeptRequest, fingerprint: str) -> Response:
    """The first response, or a refusal: the first request runs, was another, or left none."""
    if kept.fingerprint != fingerprint:
        raise errors.InvalidInput(
            f"{HEADER}: another request had this key", hint="use a new key for a new request"
        )
    if kept.is_running:
        raise errors.AlreadyRunning(
            f"the first request with this {HEADER} still runs", hint="send it again later"
        )
    if kept.status is None:
        raise errors.OutcomeUnknown(
            f"the first request with this {HEADER} ended without a response; it may have acted",
            "its process ended, or Redis was away when it ended",
            "look whether it acted; if not, send it with a new key",
        )
    if kept.body is None:
        raise errors.OutcomeUnknown(
            f"the first request with this {HEADER} acted; its response was too large to be kept",
            hint="read what changed; send a new request with a new key",
        )
    headers = {"Idempotent-Replayed": "true"}
    media_type = "application/json" if kept.body else ""
    return Response(kept.body, kept.status, headers, media_type=media_type)


async def _fingerprint(request: Request) -> str:
    digest = hashlib.sha256(request.url.query.encode() + b"\0")
    digest.update(await request.body())
    return digest.hexdigest()


def _hash(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
