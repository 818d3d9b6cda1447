"""The SNMP agents of the fleet behind one UDP port, with loss, delay and garbage on the way.

No datagram of a peer raises an exception here.
"""

from __future__ import annotations

import asyncio
import functools
import random
import socket
from collections.abc import Callable, Collection, Sequence

from poller.sim import garbled_replies, sockets
from poller.sim.clock import Clock
from poller.sim.fleet import Fault, Protocol, SimDevice
from poller.sim.snmp.agent import Agent

LOSS = 0.3
_IP_PKTINFO = 8
_ANCILLARY = socket.CMSG_SPACE(12)
_LARGEST_REQUEST = 4096
_PER_WAKE_UP = 128  # datagrams, then other callbacks of the loop run
_DELIVERY_FAULTS = frozenset((Fault.SLOW, Fault.LOSSY, Fault.GARBAGE))

_Peer = tuple[str, int]
_Ancillary = list[tuple[int, int, bytes]]
_Send = Callable[[bytes], None]


class SnmpServer:
    """The agents that are up. `requests` and `replies` count datagrams."""

    def __init__(
        self, devices: Sequence[SimDevice], seed: int = 0, clock: Clock | None = None
    ) -> None:
        self.clock = clock or Clock()
        self._all = {
            socket.inet_aton(device.address): Agent(device)
            for device in devices
            if device.protocol is Protocol.SNMP and device.fault is not Fault.DOWN
        }
        self._agents = self._all  # the agents of the sites that are not dark
        self._addresses = [device.address for device in devices if device.protocol is Protocol.SNMP]
        self._dice = random.Random(seed)  # noqa: S311  loss and garbage, not secrets
        self._sockets: list[socket.socket] = []
        self.requests = 0
        self.replies = 0

    def open(self, port: int) -> int:
        """Listen on the running loop and return the port. Raises PortInUse."""
        self._loop = asyncio.get_running_loop()
        self._sockets = sockets.open_udp(port, self._addresses)
        for sock in self._sockets:
            self._loop.add_reader(sock, self._reader(sock))
        return int(self._sockets[0].getsockname()[1]) if self._sockets else 0

    @property
    def discoveries(self) -> int:
        """The number of requests for an SNMPv3 engine id."""
        return sum(agent.discoveries for agent in self._all.values())

    def close(self) -> None:
        for sock in self._sockets:
            self._loop.remove_reader(sock)
            sock.close()
        self._sockets = []

    def darken(self, sites: Collection[str]) -> None:
        """Silence the agents of these sites, and restore those of all other sites."""
        self._agents = {
            address: agent for address, agent in self._all.items() if agent.device.site not in sites
        }

    def _reader(self, sock: socket.socket) -> Callable[[], None]:
        if not sockets.is_wildcard(sock):
            return functools.partial(
                self._drain_single, sock, socket.inet_aton(sock.getsockname()[0])
            )
        sock.setsockopt(socket.IPPROTO_IP, _IP_PKTINFO, 1)
        return functools.partial(self._drain, sock)

    def _drain(self, sock: socket.socket) -> None:
        """Answer on the wildcard socket, from the address in the ancillary data of each request."""
        receive, agents = sock.recvmsg, self._agents
        now = self.clock.now()
        for _ in range(_PER_WAKE_UP):
            try:
                data, ancillary, _flags, peer = receive(_LARGEST_REQUEST, _ANCILLARY)
            except OSError:
                return
            self.requests += 1
            if not ancillary or not peer[0].startswith(sockets.LOOPBACK):
                continue
            destination = ancillary[0][2][8:12]  # in_pktinfo: interface, local address, destination
            agent = agents.get(destination)
            reply = agent.answer(data, now) if agent else None
            if agent is None or reply is None:
                continue
            if agent.device.fault in _DELIVERY_FAULTS:
                self._misbehave(agent, reply, functools.partial(self._send, sock, ancillary, peer))
            else:
                self._send(sock, ancillary, peer, reply)

    def _drain_single(self, sock: socket.socket, address: bytes) -> None:
        """Answer on the socket of a single address."""
        for _ in range(_PER_WAKE_UP):
            try:
                data, peer = sock.recvfrom(_LARGEST_REQUEST)
            except OSError:
                return
            self.requests += 1
            agent = self._agents.get(address)
            reply = agent.answer(data, self.clock.now()) if agent else None
            if agent is None or reply is None or not peer[0].startswith(sockets.LOOPBACK):
                continue
            self._misbehave(agent, reply, functools.partial(self._send, sock, [], peer))

    def _send(self, sock: socket.socket, ancillary: _Ancillary, peer: _Peer, reply: bytes) -> None:
        try:
            sock.sendmsg((reply,), ancillary, 0, peer)
        except OSError:  # the peer is gone or the buffer is full: the datagram is lost
            return
        self.replies += 1

    def _misbehave(self, agent: Agent, reply: bytes, send: _Send) -> None:
        fault = agent.device.fault
        if fault is Fault.SLOW:
            delay = agent.device.slow_seconds * self._dice.uniform(0.5, 1.5)
            self._loop.call_later(delay, send, reply)
        elif fault is Fault.GARBAGE:
            send(garbled_replies.garble(reply, self._dice))
        elif fault is not Fault.LOSSY or self._dice.random() >= LOSS:
            send(reply)
