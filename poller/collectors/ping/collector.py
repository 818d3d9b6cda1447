"""One ping poll, top to bottom.

The collector resolves the address and chooses the method: ICMP if the system allows it, else TCP.
It sends the probes, spread over the time of the poll, and yields loss and round trips. A device
without any answer yields `ping_up` 0 and raises DeviceDown; both are stored.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from functools import lru_cache
from typing import Any, ClassVar

from poller.collectors import api, file_limit
from poller.collectors.dns_cache import Resolver
from poller.collectors.ping import round_trips, tcp_ping
from poller.collectors.ping.icmp import IcmpPinger
from poller.collectors.ping.options import PingOptions
from poller.collectors.ping.round_trips import RoundTrips

#: The poll ends this long before the platform's deadline, to yield its readings in time.
_REPORT_S = 0.05
_INFO = "ping_info"
_UP = "ping_up"
_SENT = "ping_sent"
_RECEIVED = "ping_received"
_LOSS = "ping_loss_ratio"
_ACCEPTED = "ping_tcp_accepted"
_RTT = (
    "ping_rtt_min_seconds",
    "ping_rtt_avg_seconds",
    "ping_rtt_max_seconds",
    "ping_rtt_stddev_seconds",
)
HELP = {
    _INFO: "Method of the probes: icmp or tcp",
    _UP: "Was any probe answered? 1 yes, 0 no",
    _SENT: "Probes of this poll",
    _RECEIVED: "Probes answered in time",
    _LOSS: "Share of the probes without an answer, 0 to 1",
    _RTT[0]: "Shortest round trip of this poll",
    _RTT[1]: "Mean round trip of this poll",
    _RTT[2]: "Longest round trip of this poll",
    _RTT[3]: "Standard deviation of the round trips of this poll: jitter",
    _ACCEPTED: "Did the TCP port accept a connection? 0: it refused, or did not answer",
}


class PingCollector:
    """Checks whether a device answers, by ICMP echo over one shared socket or by TCP."""

    name: ClassVar[str] = "ping"
    api_version: ClassVar[int] = api.API_VERSION
    Options: ClassVar[type[api.Options]] = PingOptions
    credentials: ClassVar[tuple[type[api.Credential], ...]] = ()

    def __init__(self) -> None:
        self._resolver = Resolver()
        self._pingers: dict[int, IcmpPinger] = {}

    async def collect(self, poll: api.Poll) -> AsyncIterator[api.Yielded]:
        method, trips = await self._ping(poll)
        yield _readings(method, trips)
        yield api.Traffic(trips.sent)
        if not trips.seconds:
            raise _down(poll, method, trips)

    async def discover(self, poll: api.Poll) -> AsyncIterator[api.Suggestion]:
        method, trips = await self._ping(poll)
        if not trips.seconds:
            raise _down(poll, method, trips)
        options = poll.options.model_dump(mode="json", exclude_unset=True)
        longest_ms = max(trips.seconds) * 1000
        reason = f"it answers {_method_text(poll, method)} within {longest_ms:.3g} ms"
        yield api.Suggestion(options, reason)

    async def close(self) -> None:
        while self._pingers:
            _, pinger = self._pingers.popitem()
            pinger.close()

    def help_texts(self, options: Any) -> Mapping[str, str]:
        return HELP

    async def _ping(self, poll: api.Poll) -> tuple[str, RoundTrips]:
        """Send all probes of a poll. Return the method and the round trips."""
        try:
            return await self._burst(poll)
        except OSError as error:
            unable = api.DeviceUnreachable("this system cannot ask it", cause=str(error))
            raise file_limit.no_file_left(error, poll.address) or unable from None

    async def _burst(self, poll: api.Poll) -> tuple[str, RoundTrips]:
        options: PingOptions = poll.options
        literal = await self._resolver.address(poll.address)
        family, address = _socket_address(literal)
        pinger = None
        if options.method != "tcp":
            pinger = self._icmp_pinger(family, options.method)

        now = asyncio.get_running_loop().time()
        left_s = poll.deadline - now - _REPORT_S
        pace = round_trips.plan(options.count, options.interval, options.timeout, left_s)

        if pinger is not None:
            return "icmp", await pinger.burst(address, pace, options.size)
        host, _, *scope = address
        port_address = (host, options.port, *scope)
        return "tcp", await tcp_ping.burst(family, port_address, pace)

    def _icmp_pinger(self, family: int, method: str) -> IcmpPinger | None:
        """Return the ICMP socket of this process; None if `auto` must use TCP. Raises OSError."""
        pinger = self._pingers.get(family)
        if pinger is not None and pinger.loop is asyncio.get_running_loop():
            return pinger
        if pinger is not None:  # of an earlier event loop
            self._pingers.pop(family).close()
        try:
            self._pingers[family] = IcmpPinger(family)
        except PermissionError:
            if method == "auto":
                return None
            raise api.OptionsUnusable(
                "this worker may not send ICMP",
                cause="its group is not in net.ipv4.ping_group_range, and it lacks CAP_NET_RAW",
                hint="sysctl -w net.ipv4.ping_group_range='0 2147483647', or method=tcp",
            ) from None
        return self._pingers[family]


def _socket_address(literal: str) -> tuple[int, tuple[Any, ...]]:
    """Return family and socket address of an IP literal, without a DNS lookup."""
    flags = socket.AI_NUMERICHOST
    results = socket.getaddrinfo(literal, 0, type=socket.SOCK_STREAM, flags=flags)
    family, _, _, _, address = results[0]
    return family, address


def _method_text(poll: api.Poll, method: str) -> str:
    return "ICMP" if method == "icmp" else f"TCP port {poll.options.port}"


def _down(poll: api.Poll, method: str, trips: RoundTrips) -> api.DeviceDown:
    probes = "1 probe" if trips.sent == 1 else f"{trips.sent} probes"
    text = f"{poll.address} is down: no answer to {probes} ({_method_text(poll, method)})"
    return api.DeviceDown(text, cause=trips.error)


def _readings(method: str, trips: RoundTrips) -> api.ReadingSet:
    answered = bool(trips.seconds)
    values: list[float] = [1, answered, trips.sent, len(trips.seconds), trips.loss]
    if answered:
        values += round_trips.summarize(trips.seconds)
    if method == "tcp":
        values.append(trips.accepted)
    return api.ReadingSet(_shape(method, answered), values)


@lru_cache(maxsize=4)
def _shape(method: str, answered: bool) -> api.SeriesSet:
    """Return the series of a poll. All targets share them: no label names the target."""
    names = [_UP, _SENT, _RECEIVED, _LOSS]
    if answered:
        names += _RTT
    if method == "tcp":
        names.append(_ACCEPTED)
    info = api.Series(_INFO, (("method", method),), api.Kind.INFO)
    gauges = [api.Series(name, (), api.Kind.GAUGE) for name in names]
    return api.SeriesSet((info, *gauges))
