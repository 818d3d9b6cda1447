"""One http poll, top to bottom.

The collector builds the URL and the login header, opens a new connection and sends the request. It
follows redirections as far as the options allow. Then it checks the status and the body against
the options and yields the readings. A server that does not answer yields `http_up` 0 and raises
DeviceDown; a wrong answer raises DeviceUnwell, or DeviceRejected if the same request cannot
succeed later. Each failure is stored with its readings.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from functools import partial
from typing import Any, ClassVar

from poller import errors
from poller.collectors import api
from poller.collectors.credentials import Login, Token
from poller.collectors.http import (
    http_connection,
    http_discovery,
    http_readings,
    http_request,
    urls,
)
from poller.collectors.http.exchange_record import Exchange
from poller.collectors.http.http_request import Request
from poller.collectors.http.options import HttpOptions, expression
from poller.collectors.http.urls import Url
from poller.collectors.memory import answer_budget

#: The poll ends this long before the platform's deadline, to yield its readings in time.
_REPORT_S = 0.05
#: Failures of the worker or its settings, which say nothing about the server.
_NOT_THE_SERVER = (api.DeviceAuthFailed, api.OptionsUnusable, errors.CollectorBusy)
_REDIRECTIONS = frozenset({301, 302, 303, 307, 308})
#: Statuses below 500 of a server that may accept the same request later.
_TRANSIENT = frozenset({408, 429})


class HttpCollector:
    """Checks whether a web server answers as required, how fast, and when its certificate expires.

    Each poll opens its own connection: the time of the connection is part of the result.
    """

    name: ClassVar[str] = "http"
    api_version: ClassVar[int] = api.API_VERSION
    Options: ClassVar[type[api.Options]] = HttpOptions
    credentials: ClassVar[tuple[type[api.Credential], ...]] = (Token, Login)

    async def collect(self, poll: api.Poll) -> AsyncIterator[api.Yielded]:
        http_poll = _HttpPoll(poll)
        error = await http_poll.run()
        if isinstance(error, _NOT_THE_SERVER):
            raise error

        for reading in http_poll.readings(up=error is None):
            yield reading
        yield api.Traffic(http_poll.requests)
        if error is not None:
            raise error
        for item in http_readings.body_values(http_poll.exchange, poll.options.values):
            yield item

    def discover(self, poll: api.Poll) -> AsyncIterator[api.Suggestion]:
        return http_discovery.discover(poll)

    def brings_credential(self, options: Any) -> bool:
        """With auth=none a target needs no credential and uses none."""
        return bool(options.auth == "none")

    def check_options(self, options: Any) -> None:
        options.trust.check_files()

    def help_texts(self, options: Any) -> Mapping[str, str]:
        texts = dict(http_readings.HELP)
        for metric, path in options.values.items():
            texts[metric] = f"{path} of the body"
        return texts


class _HttpPoll:
    """The requests of one poll. `exchange` records the last one."""

    def __init__(self, poll: api.Poll) -> None:
        self.exchange = Exchange()
        self.requests = 0
        self._poll = poll
        self._options: HttpOptions = poll.options
        self._started = time.perf_counter()
        self._matched: bool | None = None
        self._url: Url | None = None  # of the last request

    async def run(self) -> api.DeviceError | None:
        """Send the requests and check the last response. Return the failure, None for none."""
        try:
            async with asyncio.timeout_at(self._poll.deadline - _REPORT_S):
                url = await self._follow_redirections()
        except TimeoutError:
            text = f"{self._url or self._poll.address} gave no complete answer in time"
            cause = f"the time of the poll was up at {self.exchange.step}"
            return self._finding(api.DeviceTimeout(text, cause=cause))
        except api.DeviceError as error:
            return self._finding(error)
        return self._check_response(url)

    def readings(self, *, up: bool) -> list[api.Reading]:
        return http_readings.readings(
            self.exchange,
            up=up,
            duration_s=time.perf_counter() - self._started,
            redirections=max(0, self.requests - 1),
            matched=self._matched,
        )

    async def _follow_redirections(self) -> Url:
        """Send requests until a response is no redirection, and return its URL.

        Only the origin of the target receives the secret and the host option.
        """
        options = self._options
        first = _target_url(options, self._poll.address)
        secret = http_request.authorization(options, self._poll.credential)
        url = first
        while True:
            if url.origin == first.origin:
                await self._send(url, options.host, secret)
            else:
                await self._send(url, "", None)
            if not options.redirects or not self._is_redirected():
                return url
            if self.requests > options.redirects:
                raise api.DeviceUnwell(
                    f"{first} redirects more than {options.redirects} times, at last at {url}"
                )
            url = _redirection(url, self.exchange.location)

    def _is_redirected(self) -> bool:
        return self.exchange.status in _REDIRECTIONS and bool(self.exchange.location)

    async def _send(self, url: Url, host: str, secret: tuple[str, str] | None) -> None:
        options = self._options
        self.exchange = Exchange()
        self._url = url
        self.requests += 1
        hold = partial(answer_budget.shared.add, self._poll)
        request = Request(options.method, options.max_body, options.trust, host, secret, hold)
        try:
            await http_request.send(url, request, self.exchange)
        except http_connection.Untrusted:
            if self.exchange.certificate is None:
                await _try_read_certificate(url, host, self.exchange)
            raise

    def _finding(self, error: api.DeviceError) -> api.DeviceError:
        """Turn an error of the server into DeviceDown (no response) or DeviceUnwell."""
        if isinstance(error, _NOT_THE_SERVER):
            return error
        is_silent = isinstance(error, api.DeviceUnreachable | api.DeviceTimeout)
        is_down = is_silent and not self.exchange.status
        kind = api.DeviceDown if is_down else api.DeviceUnwell
        return kind(error.message, error.cause, error.hint)

    def _check_response(self, url: Url) -> api.DeviceError | None:
        options = self._options
        if not options.expects(self.exchange.status):
            return _unexpected(url, self.exchange.status, options)
        if not options.match:
            return None
        body = self.exchange.body.decode(errors="replace")
        self._matched = bool(expression(options.match).search(body))
        if self._matched:
            return None
        return api.DeviceUnwell(f"{url}: the expression is not found in its body")


def _target_url(options: HttpOptions, address: str) -> Url:
    try:
        return options.target_url(address)
    except ValueError as error:
        text = f'"{address}" cannot be asked by HTTP'
        raise api.OptionsUnusable(text, cause=str(error)) from None


def _redirection(url: Url, location: str) -> Url:
    try:
        return urls.join(url, location)
    except ValueError as error:
        raise api.DeviceProtocolError(f"{url} redirects to nowhere", cause=str(error)) from None


def _unexpected(url: Url, status: int, options: HttpOptions) -> api.DeviceError:
    if status == 401 and options.auth != "none":
        return api.DeviceAuthFailed(f"{url} refused our credential", cause="status 401")
    is_rejected = 400 <= status < 500 and status not in _TRANSIENT
    kind = api.DeviceRejected if is_rejected else api.DeviceUnwell
    cause = f"expected is {', '.join(options.expect)}"
    return kind(f"{url} answered with status {status}", cause=cause)


async def _try_read_certificate(url: Url, host: str, exchange: Exchange) -> None:
    """Record the expiry of an untrusted certificate; without success the reading is missing."""
    try:
        await http_connection.read_certificate(url, host or url.host, exchange)
    except (api.DeviceError, OSError):
        return
