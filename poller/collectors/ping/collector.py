"""One ping, top to bottom: resolve, choose how to ask, ask, say what came back. Nobody there is a result, too."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from functools import lru_cache
from typing import Any, ClassVar

from poller.collectors import api, file_limit
from poller.collectors.dns_cache import Resolver
from poller.collectors.ping import round_trips, tcp_ping
from poller.collectors.ping.icmp import Pings
from poller.collectors.ping.options import PingOptions
from poller.collectors.ping.round_trips import Trips

#: We stop this long before the platform's deadline, so that what was seen can still be handed over.
_HAND_OVER_S = 0.05
_INFO, _UP, _ACCEPTED = "ping_info", "ping_up", "ping_tcp_accepted"
_RTT = (
    "ping_rtt_min_seconds",
    "ping_rtt_avg_seconds",
    "ping_rtt_max_seconds",
    "ping_rtt_stddev_seconds",
)
HELP = {
    _INFO: "How it was asked: icmp or tcp",
    _UP: "Did anything come back? 1 yes, 0 no",
    "ping_sent": "Questions of this poll",
    "ping_received": "Those that were answered in time",
    "ping_loss_ratio": "Share of the questions that were not answered, 0 to 1",
    _RTT[0]: "Shortest round trip of this poll",
    _RTT[1]: "Mean round trip of this poll",
    _RTT[2]: "Longest round trip of this poll",
    _RTT[3]: "Standard deviation of the round trips of this poll: jitter",
    _ACCEPTED: "Did the TCP port accept a connection? 0: it refused, or nobody was there",
}


class PingCollector:
    """Is it there? ICMP echo over one socket for all targets of a process, or TCP connections."""

    name: ClassVar[str] = "ping"
    api_version: ClassVar[int] = api.API_VERSION
    Options: ClassVar[type[api.Options]] = PingOptions
    credentials: ClassVar[tuple[type[api.Credential], ...]] = ()

    def __init__(self) -> None:
        self._resolver = Resolver()
        self._pings: dict[int, Pings] = {}

    async def collect(self, poll: api.Poll) -> AsyncIterator[api.Yielded]:
        method, seen = await self._ask(poll)
        yield _readings(method, seen)
        yield api.Traffic(seen.sent)
        if not seen.seconds:
            raise _down(poll, method, seen)

    async def discover(self, poll: api.Poll) -> AsyncIterator[api.Suggestion]:
        method, seen = await self._ask(poll)
        if not seen.seconds:
            raise _down(poll, method, seen)
        given = poll.options.model_dump(mode="json", exclude_unset=True)
        yield api.Suggestion(
            given, f"it answers {_named(poll, method)} within {max(seen.seconds) * 1000:.3g} ms"
        )

    async def _ask(self, poll: api.Poll) -> tuple[str, Trips]:
        """How it was asked, and what came back."""
        try:
            return await self._burst(poll)
        except OSError as error:
            unable = api.DeviceUnreachable("this system cannot ask it", cause=str(error))
            raise file_limit.no_file_left(error, poll.address) or unable from None

    async def _burst(self, poll: api.Poll) -> tuple[str, Trips]:
        options: PingOptions = poll.options
        family, where = _socket_address(await self._resolver.address(poll.address))
        pings = None if options.method == "tcp" else self._icmp(family, options.method)
        left_s = poll.deadline - asyncio.get_running_loop().time() - _HAND_OVER_S
        pace = round_trips.pace(options.count, options.interval, options.timeout, left_s)
        if pings is not None:
            return "icmp", await pings.burst(where, pace, options.size)
        return "tcp", await tcp_ping.burst(family, (where[0], options.port, *where[2:]), pace)

    async def close(self) -> None:
        while self._pings:
            self._pings.popitem()[1].close()

    def help_texts(self, options: Any) -> Mapping[str, str]:
        return HELP

    def _icmp(self, family: int, method: str) -> Pings | None:
        """The socket of this process; None where the system allows none, and TCP will do. Raises OSError."""
        known = self._pings.get(family)
        if known is not None and known.loop is asyncio.get_running_loop():
            return known
        if known is not None:  # of a loop that is gone
            self._pings.pop(family).close()
        try:
            self._pings[family] = Pings(family)
        except PermissionError:
            if method == "auto":
                return None
            raise api.OptionsUnusable(
                "this worker may not send ICMP",
                cause="its group is not in net.ipv4.ping_group_range, and it lacks CAP_NET_RAW",
                hint="sysctl -w net.ipv4.ping_group_range='0 2147483647', or method=tcp",
            ) from None
        return self._pings[family]


def _socket_address(literal: str) -> tuple[int, tuple[Any, ...]]:
    """Family and address of an IP literal, as the kernel writes them in answers. No name is looked up."""
    found = socket.getaddrinfo(literal, 0, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    family, _, _, _, where = found[0]
    return family, where


def _named(poll: api.Poll, method: str) -> str:
    return "ICMP" if method == "icmp" else f"TCP port {poll.options.port}"


def _down(poll: api.Poll, method: str, seen: Trips) -> api.DeviceDown:
    asked = "1 question" if seen.sent == 1 else f"{seen.sent} questions"
    text = f"{poll.address} is down: no answer to {asked} ({_named(poll, method)})"
    return api.DeviceDown(text, cause=seen.told)


def _readings(method: str, seen: Trips) -> api.ReadingSet:
    numbers: list[float] = [1, bool(seen.seconds), seen.sent, len(seen.seconds), seen.loss]
    if seen.seconds:
        numbers += round_trips.spread(seen.seconds)
    if method == "tcp":
        numbers.append(seen.accepted)
    return api.ReadingSet(_shape(method, bool(seen.seconds)), numbers)


@lru_cache(maxsize=4)
def _shape(method: str, answered: bool) -> api.SeriesSet:
    """One for all targets of the world: nothing in it tells them apart."""
    names = [_UP, "ping_sent", "ping_received", "ping_loss_ratio"]
    names += _RTT if answered else ()
    names += [_ACCEPTED] if method == "tcp" else []
    info = api.Series(_INFO, (("method", method),), api.Kind.INFO)
    return api.SeriesSet((info, *(api.Series(name, (), api.Kind.GAUGE) for name in names)))
