"""Finds web servers for `poller discover`: TLS first. A certificate without a CA is pinned."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

from poller.collectors import api
from poller.collectors.http import http_connection, http_request
from poller.collectors.http.exchange_record import Exchange
from poller.collectors.http.http_request import Request
from poller.collectors.http.options import HttpOptions
from poller.collectors.http.urls import Url

#: Discovery ends this long before the deadline.
_REPORT_S = 0.1
_PLACE = frozenset({"url", "scheme", "port"})


async def discover(poll: api.Poll) -> AsyncIterator[api.Suggestion]:
    """Try the place the options name, else https and http. Raises the last DeviceError."""
    failure: api.DeviceError | None = None
    suggested = False
    for options in _candidates(poll.options):
        try:
            async with asyncio.timeout_at(poll.deadline - _REPORT_S):
                suggestion = await _try(poll.address, options)
        except TimeoutError:
            url = options.target_url(poll.address)
            failure = api.DeviceTimeout(f"{url} did not answer in time")
        except api.DeviceError as error:
            failure = error
        else:
            suggested = True
            yield suggestion
    if failure is not None and not suggested:
        raise failure


def _candidates(options: HttpOptions) -> Sequence[HttpOptions]:
    if _PLACE & options.model_fields_set:
        return [options]
    raw = options.model_dump(exclude_unset=True)
    return [HttpOptions.model_validate({**raw, "scheme": scheme}) for scheme in ("https", "http")]


async def _try(address: str, options: HttpOptions) -> api.Suggestion:
    """Request the page without a login."""
    raw: dict[str, Any] = options.model_dump(mode="json", exclude_unset=True)
    url = options.target_url(address)

    exchange = Exchange()
    request = Request(method="GET", max_body=0, trust=options.trust, host=options.host)
    try:
        await http_request.send(url, request, exchange)
    except http_connection.Untrusted as error:
        raw["fingerprint"] = await _fingerprint(url, options)
        suggestion = await _try(address, HttpOptions.model_validate(raw))
        reason = f"{suggestion.reason}; pinned, because {error.cause}"
        return api.Suggestion(suggestion.options, reason)

    if not options.expects(exchange.status):
        raw["expect"] = [str(exchange.status)]
    return api.Suggestion(raw, f"{url} answers with status {exchange.status}")


async def _fingerprint(url: Url, options: HttpOptions) -> str:
    exchange = Exchange()
    await http_connection.read_certificate(url, options.host or url.host, exchange)
    return exchange.certificate.fingerprint if exchange.certificate else ""
