"""The conformance suite: good collectors and all built-in ones pass, and each broken one fails its
own check.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from poller import testing
from poller.collectors.credentials import Community, Login, Token
from poller.collectors.http import HttpCollector
from poller.collectors.ping import PingCollector
from poller.collectors.routeros import RouterOsCollector
from poller.collectors.snmp import SnmpCollector
from poller.sim import fleet
from poller.sim.fleet import Fault, Protocol
from poller.sim.fleet_server import TlsPorts
from poller.testing import conformance
from poller.testing.checks import fault_checks, leak_checks, secret_checks, session_checks
from poller.testing.conformance import CHECKS, Check, Device, Failed, Inapplicable, Subject
from tests.integration import plugin_zoo, web_servers


@pytest.fixture(scope="module")
def device() -> Iterator[Device]:
    with plugin_zoo.device() as made:
        yield made


@pytest.fixture
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten waits and use fewer hostile devices, because the zoo is large."""
    for module, brief_s in ((fault_checks, 0.15), (leak_checks, 0.3), (secret_checks, 0.2)):
        monkeypatch.setattr(module, "BRIEF_S", brief_s)
    monkeypatch.setattr(fault_checks, "BABBLERS", (0, 2))
    monkeypatch.setattr(fault_checks, "_CANCEL_AFTER_S", 0.03)

    async def settled(enough: Any) -> bool:
        return await testing.subject.settled(enough, 0.3)

    for module in (fault_checks, leak_checks, session_checks):
        monkeypatch.setattr(module, "settled", settled)


def failures(collector: Any, device: Device, checks: Sequence[Check] = CHECKS) -> dict[str, str]:
    """Return the messages of the suite for a collector, by check."""
    subject = Subject(collector, device, {}, plugin_zoo.LOGIN)
    said = {}
    for check in checks:
        try:
            conformance.run(check, subject)
        except Failed as failure:
            said[check.__name__] = str(failure)
        except Inapplicable:
            continue
    return said


@pytest.mark.parametrize("collector", plugin_zoo.GOOD, ids=lambda each: each.__name__)
def test_a_good_collector_passes(device: Device, hurry: None, collector: Any) -> None:
    """A good collector passes plain, with sessions, in threads and with discovery."""
    assert failures(collector, device) == {}


@pytest.mark.parametrize(
    ("collector", "broken", "advice"),
    plugin_zoo.BROKEN,
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_each_broken_promise_fails_only_its_own_check_with_advice(
    device: Device, hurry: None, collector: Any, broken: set[str], advice: str
) -> None:
    """A broken collector fails no other check, which would mislead its author."""
    # A collector that breaks one of the first six checks handles faults as Good does.
    about_words = not broken & {check.__name__ for check in CHECKS[6:]}
    said = failures(collector, device, CHECKS[:6] if about_words else CHECKS)
    assert said.keys() == broken
    assert advice in " ".join(said.values())


def _simulated(protocol: Protocol) -> fleet.SimDevice:
    return next(d for d in fleet.devices(20) if d.protocol is protocol and d.fault is Fault.NONE)


@contextmanager
def agent() -> Iterator[Device]:
    device = _simulated(Protocol.SNMP)
    with testing.simulated([device]) as ports:
        yield Device(device.address, port=ports.snmp)


@contextmanager
def router() -> Iterator[Device]:
    device = _simulated(Protocol.ROUTEROS)
    with testing.simulated([device], tls=TlsPorts()) as ports:
        yield Device(device.address, port=ports.routeros_tls)


TestSnmp = conformance.suite(
    SnmpCollector,
    agent,
    options={"timeout": 0.2, "retries": 1},
    credential=Community(community=fleet.COMMUNITY),
)
TestRouterOs = conformance.suite(
    RouterOsCollector, router, credential=Login(username=fleet.USERNAME, password=fleet.PASSWORD)
)


@contextmanager
def web_server() -> Iterator[Device]:
    with web_servers.serving(_guarded) as server:
        yield Device("127.0.0.1", port=server.port)


def _guarded(head: bytes, connection: socket.socket) -> None:
    there = b"Bearer right-token" in head
    web_servers.saying("HTTP/1.1 200 OK" if there else "HTTP/1.1 401 X", b'{"load": 0.5}')(
        head, connection
    )


@contextmanager
def listener() -> Iterator[Device]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield Device("127.0.0.1", port=server.getsockname()[1])


@contextmanager
def loopback() -> Iterator[Device]:
    yield Device("127.0.0.1")


TestHttp = conformance.suite(
    HttpCollector,
    web_server,
    options={"auth": "bearer", "values": {"load": "load"}},
    credential=Token(token="right-token"),
)
TestPing = conformance.suite(PingCollector, loopback, options={"interval": 0}, port=None)
TestTcpPing = conformance.suite(
    PingCollector, listener, options={"method": "tcp", "interval": 0, "timeout": 0.2}, probe=True
)
