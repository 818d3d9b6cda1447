"""Delivery: only loopback peers get a reply, and garbage is never a valid reply."""

from __future__ import annotations

import asyncio
import random
import socket
from typing import Any

import pytest

from poller.sim import fleet, garbled_replies
from poller.sim.fleet import Protocol
from poller.sim.routeros.routeros_server import Connection, RouterOsServer
from poller.sim.snmp import ber
from poller.sim.snmp.snmp_server import SnmpServer

FLEET = fleet.devices(10, faulty_share=0)
REQUEST = ber.tlv(
    ber.SEQUENCE,
    ber.integer(1)
    + ber.octets(fleet.COMMUNITY)
    + ber.tlv(
        0xA0, ber.integer(1) + ber.integer(0) * 2 + ber.tlv(0x30, ber.varbind((1, 3, 6), b"\x05\0"))
    ),
)


class OneDatagram:
    """A socket that holds one datagram from `peer` to `address` and records replies."""

    def __init__(self, peer: str, address: str) -> None:
        packet_info = bytes(8) + socket.inet_aton(address)
        self._waiting = [(REQUEST, [(0, 8, packet_info)], 0, (peer, 4000))]
        self.sent: list[bytes] = []

    def recvmsg(self, *_: int) -> Any:
        if not self._waiting:
            raise BlockingIOError
        return self._waiting.pop()

    def sendmsg(self, buffers: tuple[bytes], *_: Any) -> None:
        self.sent += buffers


class Transport(asyncio.Transport):
    def __init__(self, peer: str, local: str) -> None:
        super().__init__({"peername": (peer, 4000), "sockname": (local, 8728)})
        self.aborted = False

    def abort(self) -> None:
        self.aborted = True


@pytest.mark.parametrize(
    ("peer", "address", "answers"),
    [
        ("127.0.0.1", FLEET[0].address, 1),
        ("192.0.2.1", FLEET[0].address, 0),
        ("127.0.0.1", "192.0.2.7", 0),
        ("127.0.0.1", FLEET[4].address, 0),  # a RouterOS device
    ],
)
def test_datagrams_from_or_to_elsewhere_are_dropped(peer: str, address: str, answers: int) -> None:
    """Only a request from loopback to an SNMP device of the fleet gets a reply."""
    datagram = OneDatagram(peer, address)
    SnmpServer(FLEET)._drain(datagram)  # type: ignore[arg-type]
    assert len(datagram.sent) == answers


@pytest.mark.parametrize(
    ("peer", "local", "aborted"),
    [
        ("127.0.0.1", FLEET[4].address, False),
        ("192.0.2.1", FLEET[4].address, True),
        ("127.0.0.1", "192.0.2.7", True),
        ("127.0.0.1", FLEET[0].address, True),  # an SNMP device
    ],
)
def test_connections_from_or_to_elsewhere_are_aborted(peer: str, local: str, aborted: bool) -> None:
    """Only a connection from loopback to a RouterOS device of the fleet stays open."""
    assert FLEET[4].protocol is Protocol.ROUTEROS

    async def connect() -> bool:
        transport = Transport(peer, local)
        Connection(RouterOsServer(FLEET)).connection_made(transport)
        return transport.aborted

    assert asyncio.run(connect()) is aborted


def test_garbage_is_never_the_reply() -> None:
    """Garbage always differs from the reply, and takes many forms."""
    dice, reply = random.Random(3), ber.varbind((1, 3, 6, 1), ber.integer(5))
    made = [garbled_replies.garble(reply, dice) for _ in range(2000)]
    assert reply not in made
    assert all(made)
    assert len(set(made)) > 100
