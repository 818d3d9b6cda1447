"""The exact engine: our own codec on our own socket, with exact types and SNMPv3 contexts.

It costs about twice the CPU of gufo, so it serves what gufo cannot do. See decision 0019.
"""

from __future__ import annotations

import asyncio
import socket

from poller.collectors.snmp.engines.engine_protocol import Garbled, Retry
from poller.collectors.snmp.wire import usm
from poller.collectors.snmp.wire.codec import Malformed
from poller.collectors.snmp.wire.exchange import (
    VERSIONS,
    CodecLink,
    CommunityFraming,
    socket_error,
)
from poller.collectors.snmp.wire.usm import UsmState
from poller.collectors.snmp.wire.v3_exchange import UsmFraming


def connect(address: str, port: int, community: str, version: str) -> CodecLink:
    """A link for SNMP v1 or v2c. Opens a socket, sends nothing. `address` must be an IP literal."""
    agent = f"{address} port {port}"
    framing = CommunityFraming(VERSIONS[version], community.encode())
    sock = _open(address, port)
    return CodecLink(sock, agent, framing, bulk=version != "1")


def connect_v3(address: str, port: int, state: UsmState, context: str = "") -> ExactUsmLink:
    """A link for SNMPv3, to one context of the agent."""
    agent = f"{address} port {port}"
    sock = _open(address, port)
    return ExactUsmLink(sock, agent, state, context)


def _open(address: str, port: int) -> socket.socket:
    """A non-blocking socket that is connected to the agent."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        sock = socket.socket(family, socket.SOCK_DGRAM)
    except OSError as error:
        raise socket_error(error, f"{address} port {port}") from None
    try:
        sock.setblocking(False)
        # A connected socket accepts datagrams of the agent only, and reports its ICMP refusals.
        sock.connect((address, port))
    except OSError as error:
        sock.close()
        raise socket_error(error, f"{address} port {port}") from None
    return sock


class ExactUsmLink(CodecLink):
    """SNMPv3. All links to an agent share its UsmState: engine id, keys and clock."""

    _framing: UsmFraming

    def __init__(self, sock: socket.socket, agent: str, state: UsmState, context: str) -> None:
        clock = asyncio.get_running_loop().time
        framing = UsmFraming(state, context, clock)
        super().__init__(sock, agent, framing, bulk=True)
        self._state = state
        self.silence = usm.silence(state.passwords, context)

    async def handshake(self, retry: Retry) -> None:
        """Discover the agent's engine id, unless it is known. A later report corrects the clock."""
        if not self._state.engine_id:
            await retry(self._discover)

    async def _discover(self, _: int, wait_s: float) -> None:
        """Send a discovery message and wait for its report."""
        deadline = self._loop.time() + wait_s
        try:
            self._send(self._framing.encode_discovery())
            while not self._framing.decode_discovery(await self._receive(deadline)):
                pass
        except Malformed as error:
            raise Garbled(f"SNMP with {self._agent} failed", cause=str(error)) from None
        except OSError as error:
            raise socket_error(error, self._agent) from None
