"""One socket serves all pings: each reply reaches its request, and nothing else is a reply."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import struct
from collections.abc import Callable
from typing import Any

import pytest

from poller import testing
from poller.collectors.ping import PingCollector, icmp, icmp_sockets
from poller.collectors.ping.icmp import IcmpPinger
from poller.collectors.ping.round_trips import Pace, RoundTrips
from poller.domain.failures.outcome import Result

IDENTIFIER = 4711
HOST = "192.0.2.7"
Script = Callable[["Network", bytes, str], None]


class Network:
    """An ICMP socket whose replies come from a script."""

    def __init__(self, script: Script) -> None:
        self.sent: list[tuple[bytes, str]] = []
        self._script = script
        self._near, self._far = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._near.setblocking(False)
        self._complaints: list[tuple[bytes, Any, str]] = []

    def fileno(self) -> int:
        return self._near.fileno()

    def close(self) -> None:
        self._near.close()
        self._far.close()

    def getsockopt(self, *_: Any) -> int:
        return 0

    def sendto(self, data: bytes, where: tuple[Any, ...]) -> int:
        self.sent.append((data, where[0]))
        self._script(self, data, where[0])
        return len(data)

    def say(self, data: bytes, sender: str = HOST) -> None:
        self._far.send(sender.encode().ljust(16) + data)

    def recvmsg(self, *given: int) -> tuple[bytes, list[Any], int, tuple[str, int]]:
        if len(given) == 3:
            if not self._complaints:
                raise BlockingIOError
            data, ancillary, asked = self._complaints.pop()
            return data, ancillary, 0, (asked, 0)
        data = self._near.recv(65536)
        return data[16:], [], 0, (data[:16].decode().strip(), 0)


def answer(data: bytes) -> bytes:
    return b"\0" + data[1:]


def obliging(network: Network, data: bytes, where: str) -> None:
    network.say(answer(data), where)


async def ask(
    network: Network, monkeypatch: pytest.MonkeyPatch, pace: Pace, host: str = HOST
) -> RoundTrips:
    made = icmp_sockets.IcmpSocket(network, socket.AF_INET, IDENTIFIER, raw=False)  # type: ignore[arg-type]
    monkeypatch.setattr(icmp.icmp_sockets, "open_socket", lambda family: made)
    pings = IcmpPinger(socket.AF_INET)
    try:
        seen = await pings.burst((host, 0), pace, 56)
        assert not pings._pending  # nothing is remembered of who does not wait any more
        return seen
    finally:
        pings.close()


def run(
    script: Script, monkeypatch: pytest.MonkeyPatch, pace: Pace = Pace(3, 0.0, 0.05)
) -> RoundTrips:
    return asyncio.run(ask(Network(script), monkeypatch, pace))


def test_answers_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The poll ends with the last reply, long before the timeout."""
    seen = run(obliging, monkeypatch, Pace(3, 0.0, 60.0))
    assert (seen.sent, len(seen.seconds), seen.loss) == (3, 3, 0)
    assert all(0 < trip < 1 for trip in seen.seconds)


def test_every_request_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests differ by number and by random data."""
    network = Network(obliging)
    asyncio.run(ask(network, monkeypatch, Pace(20, 0.0, 1.0)))
    assert len({data[6:8] for data, _ in network.sent}) == 20
    assert len({data[8:16] for data, _ in network.sent}) == 20


def test_a_reused_number_belongs_to_the_last_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """There are 65536 numbers: a finished poll does not remove the request of another."""
    held: list[bytes] = []

    def slow(network: Network, data: bytes, where: str) -> None:
        held.append(data)

    async def scenario() -> tuple[RoundTrips, RoundTrips]:
        network = Network(slow)
        made = icmp_sockets.IcmpSocket(network, socket.AF_INET, IDENTIFIER, raw=False)  # type: ignore[arg-type]
        monkeypatch.setattr(icmp.icmp_sockets, "open_socket", lambda family: made)
        pings = IcmpPinger(socket.AF_INET)
        first = asyncio.ensure_future(pings.burst((HOST, 0), Pace(2, 0.0, 0.1), 56))
        await asyncio.sleep(0.01)
        network.say(answer(held[0]))
        await asyncio.sleep(0.01)
        pings._sequence = int.from_bytes(held[0][6:8], "big") - 1
        second = asyncio.ensure_future(pings.burst((HOST, 0), Pace(1, 0.0, 5.0), 56))
        await first
        assert held[2][6:8] == held[0][6:8]
        network.say(answer(held[2]))
        try:
            return first.result(), await second
        finally:
            pings.close()

    first, second = asyncio.run(scenario())
    assert (len(first.seconds), len(second.seconds)) == (1, 1)


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_loss_is_counted(monkeypatch: pytest.MonkeyPatch, lost: int) -> None:
    """Whichever of them it is."""

    def forgetful(network: Network, data: bytes, where: str) -> None:
        if len(network.sent) != lost + 1:
            network.say(answer(data), where)

    seen = run(forgetful, monkeypatch)
    assert (seen.sent, len(seen.seconds)) == (3, 2)


@pytest.mark.parametrize(
    "liar",
    [
        lambda n, data, where: n.say(answer(data), "192.0.2.8"),
        lambda n, data, where: n.say(answer(data[:4] + b"\0\1" + data[6:])),
        lambda n, data, where: n.say(answer(data[:6] + b"\xff\xfe" + data[8:])),
        lambda n, data, where: n.say(answer(data[:-1] + b"x")),
        lambda n, data, where: n.say(answer(data[:-1])),
        lambda n, data, where: n.say(answer(data + b"\0")),
        lambda n, data, where: n.say(data),
        lambda n, data, where: n.say(b"\0\1" + data[2:]),
        lambda n, data, where: n.say(os.urandom(5)),
        lambda n, data, where: n.say(b""),
    ],
    ids=[
        "sender",
        "identifier",
        "number",
        "data",
        "short",
        "long",
        "a question",
        "code",
        "noise",
        "nothing",
    ],
)
def test_what_is_not_quite_the_answer_is_none(
    monkeypatch: pytest.MonkeyPatch, liar: Script
) -> None:
    assert run(liar, monkeypatch, Pace(1, 0.0, 0.02)).seconds == []


def test_an_answer_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def stutterer(network: Network, data: bytes, where: str) -> None:
        network.say(answer(data), where)
        network.say(answer(data), where)

    assert len(run(stutterer, monkeypatch).seconds) == 3


def test_an_answer_that_comes_after_its_time_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """A late reply is lost, though a later request is still pending."""
    held: list[bytes] = []

    def slow(network: Network, data: bytes, where: str) -> None:
        if held:
            network.say(answer(held.pop()), where)
            network.say(answer(data), where)
        else:
            held.append(data)

    seen = run(slow, monkeypatch, Pace(2, 0.06, 0.03))
    assert (seen.sent, len(seen.seconds)) == (2, 1)


def test_an_error_of_a_router_ends_the_wait_and_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The error quotes the head of the request; its sender is named."""
    offender = struct.pack("=HH", socket.AF_INET, 0) + socket.inet_aton("10.0.0.1") + bytes(8)
    told = struct.pack("=IBBBBII", errno.EHOSTUNREACH, 2, 3, 1, 0, 0, 0) + offender

    def unreachable(network: Network, data: bytes, where: str) -> None:
        network._complaints.append((data[:8], [(socket.IPPROTO_IP, 11, told)], where))

    async def scenario() -> RoundTrips:
        network = Network(unreachable)
        made = icmp_sockets.IcmpSocket(network, socket.AF_INET, IDENTIFIER, raw=False)  # type: ignore[arg-type]
        monkeypatch.setattr(icmp.icmp_sockets, "open_socket", lambda family: made)
        pings = IcmpPinger(socket.AF_INET)
        asyncio.get_running_loop().call_later(0.01, pings._read_errors)  # what an EPOLLERR does
        try:
            return await pings.burst((HOST, 0), Pace(2, 0.0, 60.0), 56)
        finally:
            pings.close()

    seen = asyncio.run(scenario())
    assert (seen.seconds, seen.error) == ([], "No route to host, says 10.0.0.1")


def test_a_missing_route_is_reported_without_a_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_route(network: Network, data: bytes, where: str) -> None:
        raise OSError(errno.ENETUNREACH, "Network is unreachable")

    assert run(no_route, monkeypatch, Pace(3, 0.0, 60.0)).error == "Network is unreachable"


def test_an_error_of_another_request_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel reports errors of a shared socket to the next sender."""
    failed: list[int] = []

    def once(network: Network, data: bytes, where: str) -> None:
        if not failed:
            failed.append(1)
            raise OSError(errno.EHOSTUNREACH, "No route to host")
        network.say(answer(data), where)

    assert len(run(once, monkeypatch).seconds) == 3


def test_a_full_buffer_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts: list[int] = []

    def busy(network: Network, data: bytes, where: str) -> None:
        attempts.append(1)
        if len(attempts) % 2:
            raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
        network.say(answer(data), where)

    assert len(run(busy, monkeypatch, Pace(3, 0.0, 5.0)).seconds) == 3


@pytest.mark.parametrize("number", [errno.EPERM, errno.EACCES, errno.EPROTONOSUPPORT])
def test_without_permission_it_is_tcp_or_a_clear_refusal(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`auto` uses TCP, `icmp` names the fix; this holds for systems without such sockets, too."""

    def forbidden(family: int) -> icmp_sockets.IcmpSocket:
        raise OSError(number, "no")

    monkeypatch.setattr(icmp.icmp_sockets, "_open_unprivileged", forbidden)
    monkeypatch.setattr(icmp.icmp_sockets, "_open_raw", forbidden)
    with socket.create_server(("127.0.0.1", 0)) as server:
        options = {"port": server.getsockname()[1], "count": 1}
        auto = asyncio.run(testing.collect(PingCollector(), "127.0.0.1", **options))
        only = asyncio.run(testing.collect(PingCollector(), "127.0.0.1", method="icmp", **options))
    assert auto.result is Result.OK
    assert auto.readings is not None
    assert dict(auto.readings.series.series[0].labels) == {"method": "tcp"}
    assert (only.result, only.error_code) == (Result.FAILED, "options_invalid")
    assert only.message.startswith("this worker may not send ICMP")
