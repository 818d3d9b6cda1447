"""Is there a web server, and how should it be asked? By TLS if it can; a certificate that nobody signed is pinned."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

from poller.collectors import api
from poller.collectors.http import http_connection, http_request, status_ranges
from poller.collectors.http.exchange_record import Seen
from poller.collectors.http.http_request import Request
from poller.collectors.http.options import HttpOptions

_HAND_OVER_S = 0.1
_PLACE = frozenset({"url", "scheme", "port"})


async def discover(poll: api.Poll) -> AsyncIterator[api.Suggestion]:
    """Where the options say, else by TLS and without. Raises the last DeviceError when nobody is there."""
    failed: api.DeviceError | None = None
    found = False
    for options in _candidates(poll.options):
        try:
            async with asyncio.timeout_at(poll.deadline - _HAND_OVER_S):
                suggestion = await _try(poll.address, options)
        except TimeoutError:
            failed = api.DeviceTimeout(f"{options.where(poll.address)} did not answer in time")
        except api.DeviceError as error:
            failed = error
        else:
            found = True
            yield suggestion
    if failed is not None and not found:
        raise failed


def _candidates(given: HttpOptions) -> Sequence[HttpOptions]:
    if _PLACE & given.model_fields_set:
        return [given]
    raw = given.model_dump(exclude_unset=True)
    return [HttpOptions.model_validate({**raw, "scheme": scheme}) for scheme in ("https", "http")]


async def _try(address: str, options: HttpOptions) -> api.Suggestion:
    """Asks for the page, and logs in nowhere."""
    seen, raw = Seen(), options.model_dump(mode="json", exclude_unset=True)
    url = options.where(address)
    try:
        await http_request.run(url, Request("GET", 0, options.trust, options.host), seen)
    except http_connection.Untrusted as error:
        pinned = HttpOptions.model_validate(
            {**raw, "fingerprint": await _fingerprint(url, options)}
        )
        suggestion = await _try(address, pinned)
        return api.Suggestion(
            suggestion.options, f"{suggestion.reason}; pinned, because {error.cause}"
        )
    fine: dict[str, Any] = (
        {} if status_ranges.fits(seen.status, options.expect) else {"expect": [str(seen.status)]}
    )
    return api.Suggestion({**raw, **fine}, f"{url} answers with status {seen.status}")


async def _fingerprint(url: Any, options: HttpOptions) -> str:
    glance = Seen()
    await http_connection.look_at_certificate(url, options.host or url.host, glance)
    return glance.certificate.fingerprint if glance.certificate else ""
