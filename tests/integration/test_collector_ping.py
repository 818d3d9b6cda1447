"""The ping collector on real sockets: ICMP with and without privilege, IPv4, IPv6 and TCP."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
import uvloop

from poller import testing
from poller.collectors.api import Poll
from poller.collectors.ping import PingCollector
from poller.collectors.ping.options import PingOptions
from poller.collectors.poll_runner import run_poll
from poller.domain.failures.outcome import Outcome, Result
from tests.integration.networks import alone, ip, sysctl

FEW = {"count": 3, "interval": 0.01, "timeout": 0.3}


def ping(address: str, timeout_s: float = 5.0, **options: Any) -> Outcome:
    """Run one poll and close the collector as a worker does."""

    async def poll() -> Outcome:
        collector = PingCollector()
        try:
            return await testing.collect(
                collector, address, timeout_s=timeout_s, **{**FEW, **options}
            )
        finally:
            await collector.close()

    return asyncio.run(poll())


def values(outcome: Outcome) -> dict[str, float]:
    assert outcome.readings is not None, outcome
    return {reading.name: reading.value for reading in outcome.readings}


def method(outcome: Outcome) -> str:
    assert outcome.readings is not None, outcome
    return dict(outcome.readings.series.series[0].labels)["method"]


def allow_everybody() -> None:
    sysctl("net.ipv4.ping_group_range", "0 2147483647")


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "127.1.2.3", "::1", "0:0:0:0:0:0:0:1", "localhost"]
)
@pytest.mark.parametrize("privileged", [False, True])
def test_a_device_that_responds_is_up(address: str, privileged: bool) -> None:
    """An unprivileged socket is used where the system allows it, else a raw socket."""

    def work() -> Outcome:
        if not privileged:
            allow_everybody()
        return ping(address, method="icmp")

    outcome = alone(work)
    assert outcome.result is Result.OK, outcome
    found = values(outcome)
    assert (
        found["ping_up"],
        found["ping_sent"],
        found["ping_received"],
        found["ping_loss_ratio"],
    ) == (1, 3, 3, 0)
    assert (
        0
        < found["ping_rtt_min_seconds"]
        <= found["ping_rtt_avg_seconds"]
        <= found["ping_rtt_max_seconds"]
        < 0.3
    )
    assert 0 <= found["ping_rtt_stddev_seconds"] < 0.3
    assert method(outcome) == "icmp"


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
@pytest.mark.parametrize("privileged", [False, True])
def test_a_silent_device_is_down_with_readings(address: str, privileged: bool) -> None:
    """A ping of a silent device ends after its time-outs and takes hardly any CPU."""

    def work() -> tuple[Outcome, float, float]:
        if not privileged:
            allow_everybody()
        sysctl("net.ipv4.icmp_echo_ignore_all", "1")
        sysctl("net.ipv6.icmp.echo_ignore_all", "1")
        began, busy = time.monotonic(), time.thread_time()
        outcome = ping(address, timeout=0.5)
        return outcome, time.monotonic() - began, time.thread_time() - busy

    outcome, took_s, busy_s = alone(work)
    assert (outcome.result, outcome.error_code, outcome.retryable) == (Result.FAILED, "down", False)
    assert outcome.message == f"{address} is down: no answer to 3 probes (ICMP)"
    found = values(outcome)
    assert (found["ping_up"], found["ping_received"], found["ping_loss_ratio"]) == (0, 0, 1)
    assert "ping_rtt_avg_seconds" not in found
    assert 0.5 <= took_s < 1.5
    assert busy_s < 0.2


def test_the_deadline_overrides_the_options() -> None:
    """All requests are sent, and those without a response at the deadline are lost."""

    def work() -> tuple[Outcome, float]:
        sysctl("net.ipv4.icmp_echo_ignore_all", "1")
        began = time.monotonic()
        return ping(
            "127.0.0.1", timeout_s=0.5, count=10, interval=1.0, timeout=30.0
        ), time.monotonic() - began

    outcome, took_s = alone(work)
    assert (outcome.result, outcome.error_code) == (Result.FAILED, "down")
    assert (values(outcome)["ping_sent"], values(outcome)["ping_loss_ratio"]) == (10, 1)
    assert took_s < 1.2


@pytest.mark.parametrize("privileged", [False, True])
def test_the_error_of_a_router_is_reported_with_its_address(privileged: bool) -> None:
    """The neighbour does not exist: this host reports it, as a router on the path would."""

    def work() -> tuple[Outcome, float]:
        if not privileged:
            allow_everybody()
        ip("link add left type veth peer name right")
        ip("address add 192.0.2.1/24 dev left")
        ip("link set left up")
        ip("link set right up")
        sysctl("net.ipv4.neigh.left.mcast_solicit", "1")
        sysctl("net.ipv4.neigh.left.retrans_time_ms", "50")
        began = time.monotonic()
        return ping("192.0.2.9", timeout_s=20, timeout=15.0), time.monotonic() - began

    outcome, took_s = alone(work)
    assert (outcome.result, outcome.error_code) == (Result.FAILED, "down")
    assert outcome.message.endswith("(No route to host, says 192.0.2.1)"), outcome.message
    assert took_s < 10


def test_a_missing_route_is_reported_at_once() -> None:
    began = time.monotonic()
    outcome = alone(lambda: ping("192.0.2.9", timeout_s=20, timeout=15.0))
    assert (
        outcome.message
        == "192.0.2.9 is down: no answer to 3 probes (ICMP) (Network is unreachable)"
    )
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_two_thousand_devices_share_one_socket(loop: Any) -> None:
    """All pings run at the same time; no reply is lost or mixed up."""

    def work() -> tuple[list[Outcome], int]:
        with asyncio.Runner(loop_factory=loop) as runner:
            return runner.run(many())

    async def many() -> tuple[list[Outcome], int]:
        collector = PingCollector()
        options = PingOptions(count=2, interval=0.2, timeout=3.0, method="icmp")
        deadline = asyncio.get_running_loop().time() + 10
        gc.collect()  # what earlier tests left open may not close while this one counts
        before = len(os.listdir("/proc/self/fd"))
        polls = [
            Poll(n, "d", f"127.7.{n // 250}.{n % 250 + 1}", options, None, deadline)
            for n in range(2000)
        ]
        running = [asyncio.ensure_future(run_poll(collector, poll)) for poll in polls]
        await asyncio.sleep(0.1)
        opened = len(os.listdir("/proc/self/fd")) - before
        outcomes = await asyncio.gather(*running)
        await collector.close()
        assert len(os.listdir("/proc/self/fd")) == before
        return outcomes, opened

    outcomes, opened = alone(work)
    assert [outcome for outcome in outcomes if outcome.result is not Result.OK] == []
    assert {values(outcome)["ping_loss_ratio"] for outcome in outcomes} == {0}
    assert opened <= 2  # the socket, and its epoll that the loop watches


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_tcp_to_a_port_that_accepts_and_one_that_refuses(family: socket.AddressFamily) -> None:
    """Either answer means that the device is up; a reading states which it was."""
    address = "127.0.0.1" if family == socket.AF_INET else "::1"
    with socket.create_server((address, 0), family=family) as server:
        port = server.getsockname()[1]
        accepted = ping(address, method="tcp", port=port)
    refused = ping(address, method="tcp", port=port)
    assert (accepted.result, refused.result) == (Result.OK, Result.OK)
    assert (values(accepted)["ping_tcp_accepted"], values(refused)["ping_tcp_accepted"]) == (1, 0)
    assert values(refused)["ping_loss_ratio"] == 0
    assert 0 < values(accepted)["ping_rtt_max_seconds"] < 0.3
    assert method(refused) == "tcp"


@contextmanager
def full_server() -> Iterator[int]:
    """A port with a full queue, where the system does not answer."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server:
        waiting = []
        for _ in range(4):
            client = socket.socket()
            client.setblocking(False)
            with suppress(BlockingIOError):
                client.connect(server.getsockname())
            waiting.append(client)
        try:
            yield server.getsockname()[1]
        finally:
            for client in waiting:
                client.close()


def test_tcp_to_a_silent_port_is_down() -> None:
    with full_server() as port:
        outcome = ping("127.0.0.1", method="tcp", port=port)
    assert (outcome.result, outcome.error_code) == (Result.FAILED, "down")
    assert outcome.message == f"127.0.0.1 is down: no answer to 3 probes (TCP port {port})"
    assert (values(outcome)["ping_up"], values(outcome)["ping_loss_ratio"]) == (0, 1)


def test_a_name_without_an_address_is_unreachable() -> None:
    outcome = alone(lambda: ping("no-such-host.invalid"))
    assert (outcome.result, outcome.error_code) == (Result.FAILED, "unreachable")
