"""One http poll, top to bottom: ask, follow redirections, judge the answer, hand over. Nobody there is a result."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any, ClassVar

from poller import errors
from poller.collectors import api
from poller.collectors.credentials import Login, Token
from poller.collectors.http import (
    http_auth,
    http_connection,
    http_discovery,
    http_readings,
    http_request,
    status_ranges,
    urls,
)
from poller.collectors.http.exchange_record import Seen
from poller.collectors.http.http_request import Request
from poller.collectors.http.options import HttpOptions, expression
from poller.collectors.http.urls import Url

#: We stop this long before the platform's deadline, so that what was seen can still be handed over.
_HAND_OVER_S = 0.05
#: These say nothing of the server.
_OURS = (api.DeviceAuthFailed, api.OptionsUnusable, errors.CollectorBusy)
_REDIRECTIONS = frozenset({301, 302, 303, 307, 308})


class HttpCollector:
    """Does a web server answer as it should, how fast, and how long is its certificate good for?

    A connection of its own for each poll: how long it takes to make one is half of the answer.
    """

    name: ClassVar[str] = "http"
    api_version: ClassVar[int] = api.API_VERSION
    Options: ClassVar[type[api.Options]] = HttpOptions
    credentials: ClassVar[tuple[type[api.Credential], ...]] = (Token, Login)

    async def collect(self, poll: api.Poll) -> AsyncIterator[api.Yielded]:
        visit = _Visit(poll)
        error = await visit.run()
        if isinstance(error, _OURS):
            raise error
        for reading in visit.readings(up=error is None):
            yield reading
        yield api.Traffic(visit.asked)
        if error is not None:
            raise error
        for item in http_readings.values(visit.seen, poll.options.values):
            yield item

    def discover(self, poll: api.Poll) -> AsyncIterator[api.Suggestion]:
        return http_discovery.discover(poll)

    def brings_credential(self, options: Any) -> bool:
        """Without auth none is needed, and none is used."""
        return bool(options.auth == "none")

    def check_options(self, options: Any) -> None:
        try:
            options.trust.context()
        except api.OptionsUnusable as error:
            raise errors.ConfigError(error.message, error.cause, error.hint) from None

    def help_texts(self, options: Any) -> Mapping[str, str]:
        return {
            **http_readings.HELP,
            **{metric: f"{path} of the body" for metric, path in options.values.items()},
        }


class _Visit:
    """The requests of one poll, and what came of the last one."""

    def __init__(self, poll: api.Poll) -> None:
        self.seen = Seen()
        self.asked = 0
        self._poll = poll
        self._options: HttpOptions = poll.options
        self._began = time.perf_counter()
        self._matched: bool | None = None
        self._url: Url | None = None  # the one that is asked

    async def run(self) -> api.DeviceError | None:
        """What is wrong with the server, or with us; None when all is well."""
        try:
            async with asyncio.timeout_at(self._poll.deadline - _HAND_OVER_S):
                url = await self._follow()
        except TimeoutError:
            text = f"{self._url or self._poll.address} gave no complete answer in time"
            return self._told(
                api.DeviceTimeout(text, cause=f"the time of the poll was up at {self.seen.doing}")
            )
        except api.DeviceError as error:
            return self._told(error)
        return self._judge(url)

    def readings(self, *, up: bool) -> list[api.Reading]:
        took_s = time.perf_counter() - self._began
        return list(http_readings.of(self.seen, up, took_s, max(0, self.asked - 1), self._matched))

    async def _follow(self) -> Url:
        """To the end of the redirections, as far as the options allow. The secret goes only to who it is for."""
        options = self._options
        url = first = _where(options, self._poll.address)
        secret = http_auth.header(options, self._poll.credential)
        while True:
            for_it = url.origin == first.origin
            self.seen, self._url = Seen(), url
            await self._ask(url, options.host if for_it else "", secret if for_it else None)
            if (
                self.seen.status not in _REDIRECTIONS
                or not self.seen.location
                or not options.redirects
            ):
                return url
            if self.asked > options.redirects:
                raise api.DeviceUnwell(
                    f"{first} redirects more than {options.redirects} times, at last at {url}"
                )
            url = _next(url, self.seen.location)

    async def _ask(self, url: Url, host: str, secret: tuple[str, str] | None) -> None:
        options = self._options
        request = Request(options.method, options.max_body, options.trust, host, secret)
        self.asked += 1
        try:
            await http_request.run(url, request, self.seen)
        except http_connection.Untrusted:
            if self.seen.certificate is None:
                await _glance(url, host, self.seen)
            raise

    def _told(self, error: api.DeviceError) -> api.DeviceError:
        """Nobody there is another matter than an answer that is wrong, or breaks off."""
        if isinstance(error, _OURS):
            return error
        nobody = (
            isinstance(error, api.DeviceUnreachable | api.DeviceTimeout) and not self.seen.status
        )
        return (api.DeviceDown if nobody else api.DeviceUnwell)(
            error.message, error.cause, error.hint
        )

    def _judge(self, url: Url) -> api.DeviceError | None:
        options, seen = self._options, self.seen
        if not status_ranges.fits(seen.status, options.expect):
            return _unexpected(url, seen.status, options)
        if not options.match:
            return None
        self._matched = bool(expression(options.match).search(seen.body.decode(errors="replace")))
        return (
            None
            if self._matched
            else api.DeviceUnwell(f"{url}: the expression is not found in its body")
        )


def _where(options: HttpOptions, address: str) -> Url:
    try:
        return options.where(address)
    except ValueError as error:
        raise api.OptionsUnusable(
            f'"{address}" cannot be asked by HTTP', cause=str(error)
        ) from None


def _next(url: Url, location: str) -> Url:
    try:
        return urls.joined(url, location)
    except ValueError as error:
        raise api.DeviceProtocolError(f"{url} redirects to nowhere", cause=str(error)) from None


def _unexpected(url: Url, status: int, options: HttpOptions) -> api.DeviceError:
    wanted = ", ".join(options.expect)
    if status == 401 and options.auth != "none":
        return api.DeviceAuthFailed(f"{url} refused our credential", cause="status 401")
    return api.DeviceUnwell(f"{url} answered with status {status}", cause=f"expected is {wanted}")


async def _glance(url: Url, host: str, seen: Seen) -> None:
    """When does the certificate expire that we do not trust? If that cannot be had either, never mind."""
    try:
        await http_connection.look_at_certificate(url, host or url.host, seen)
    except (api.DeviceError, OSError):
        return
