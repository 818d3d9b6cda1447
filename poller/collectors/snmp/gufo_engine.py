"""The default engine: gufo-snmp (Rust), taken at its socket level, one call per datagram instead of per row.

`_TRANSLATION` is the only place that knows the library's exceptions.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from typing import Any

import gufo.snmp
from gufo.snmp import _fast

from poller import errors
from poller.collectors.snmp import datagram
from poller.collectors.snmp.engine import Ask, ErrorStatus, Garbled, NoReply, Page, Row

#: Longest reply the library can take; longer ones arrive cut off.
BUFFER_BYTES = 4080
_GET_AT_ONCE = 20
#: So many are thrown away at a time, so that a flood stops nobody else.
_LATE_ANSWERS = 64
_PEEK = int(socket.MSG_PEEK | socket.MSG_TRUNC)

_TRANSLATION: dict[type[Exception], type[errors.DeviceError]] = {
    gufo.snmp.SnmpAuthError: errors.DeviceAuthFailed,
    gufo.snmp.SnmpDecodeError: Garbled,
    gufo.snmp.SnmpEncodeError: errors.DeviceProtocolError,
    gufo.snmp.NoSuchInstance: errors.DeviceUnsupported,
    gufo.snmp.SnmpError: errors.DeviceProtocolError,
    TimeoutError: errors.DeviceUnreachable,  # an ICMP refusal: our own timers never raise it
    OSError: errors.DeviceUnreachable,
    ValueError: errors.DeviceUnsupported,
    RuntimeError: errors.DeviceProtocolError,
}
EXPECTED = tuple(_TRANSLATION)


def translate(error: Exception, agent: str) -> errors.DeviceError:
    """The library's exception as one of ours; the nearest class in its ancestry decides."""
    kind = next(_TRANSLATION[base] for base in type(error).__mro__ if base in _TRANSLATION)
    if isinstance(error, TimeoutError | ConnectionRefusedError):
        return kind(f"{agent} refused the connection", cause="no SNMP agent listens on that port")
    if kind is errors.DeviceAuthFailed:
        return kind(f"{agent} refused our SNMP credential", cause=str(error))
    # What follows a colon may be a piece of the datagram, and a datagram contains the community.
    return kind(f"SNMP with {agent} failed", cause=str(error).partition(":")[0])


def connect(address: str, port: int, community: str, version: str, wary: bool = False) -> GufoLink:
    """A link for SNMP v1 or v2c. Opens a socket, sends nothing. `address` must be an IP literal."""
    kind = _fast.SnmpV1ClientSocket if version == "1" else _fast.SnmpV2cClientSocket
    agent = f"{address} port {port}"
    try:
        sock = kind(endpoint(address, port), community, 0, 0, 0, 0)
    except EXPECTED as error:
        raise translate(error, agent) from None
    return GufoLink(sock, agent, ipv6=":" in address, bulk=version != "1", wary=wary)


def endpoint(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


class GufoLink:
    """One UDP socket to one agent, for one poll at a time."""

    def __init__(self, sock: Any, agent: str, *, ipv6: bool, bulk: bool = True, wary: bool = False) -> None:
        self._sock = sock
        self._agent = agent
        self._bulk = bulk
        self.at_once = _GET_AT_ONCE if bulk else 1  # v1 refuses a whole GET for one missing OID
        #: Check each datagram to its end before the library sees it: after one that made it panic.
        self.wary = wary
        self._loop = asyncio.get_running_loop()
        self._waiter: asyncio.Future[bool] | None = None
        self._until = 0.0  # the waiter's patience
        self._timer: asyncio.TimerHandle | None = None
        self._resting = False
        self._fd: int = sock.get_fd()
        # A second view of the descriptor, to look at a datagram before the library consumes it.
        self._tap = socket.socket(_family(ipv6), socket.SOCK_DGRAM, 0, fileno=self._fd)
        self._head = bytearray(BUFFER_BYTES if wary else datagram.HEAD_BYTES)
        self._loop.add_reader(self._fd, self._on_readable)

    async def begin(self, ask: Ask) -> None:
        """v1 and v2c need no introduction."""

    async def page(self, cursor: str, root: str, repetitions: int, wait_s: float) -> Page:
        sock = self._sock
        within = _fast.GetIter(root)
        if self._bulk:
            request = _fast.GetIter(cursor, repetitions)
            rows = await self.exchange(sock.send_get_bulk, request, sock.recv_get_bulk, within, wait_s)
        else:
            request = _fast.GetIter(cursor)
            row = await self.exchange(sock.send_get_next, request, sock.recv_get_next, within, wait_s)
            rows = row and [row]
        if not rows:
            self._check_status()
            return Page((), ended=True)
        if rows[-1] is None:  # the library's mark for "left the subtree"
            rows.pop()
            return Page(rows, ended=True)
        return Page(rows, ended=False)

    async def get(self, oids: Sequence[str], wait_s: float) -> Sequence[Row]:
        sock = self._sock
        values = await self.exchange(sock.send_get_many, list(oids), sock.recv_get_many, None, wait_s)
        if len(values) < len(oids):
            self._check_status()
        return list(values.items())

    async def exchange(
        self,
        send: Callable[..., None],
        request: Any,
        receive: Callable[..., Any],
        context: Any,
        wait_s: float,
    ) -> Any:
        """Send one datagram and wait for its answer. None when the library says there is nothing more."""
        deadline = self._loop.time() + wait_s
        arguments = () if context is None else (context,)
        try:
            _send(send, request)
            while True:
                await self._until_readable(deadline)
                if not self._inspect():
                    continue
                try:
                    return receive(*arguments)
                except BlockingIOError:  # somebody else's answer, or one to an earlier try
                    continue
        except StopAsyncIteration:
            return None
        except EXPECTED as error:
            raise translate(error, self._agent) from None
        except BaseException as error:
            if type(error).__name__ != "PanicException":
                raise
            self.wary = True
            raise Garbled(f"SNMP with {self._agent} failed", cause="malformed answer") from None

    async def _until_readable(self, deadline: float) -> None:
        if self._loop.time() >= deadline:  # checked here, for a flood of rubbish is always readable
            raise NoReply("no answer")
        self._waiter = self._loop.create_future()
        self._until = deadline
        if self._timer is None or self._timer.when() > deadline:
            self._set_timer()
        try:
            if not await self._waiter:
                raise NoReply("no answer")
        finally:
            self._waiter = None

    def _on_readable(self) -> None:
        if self._waiter is not None:
            if not self._waiter.done():
                self._waiter.set_result(True)
        elif self._resting:
            self._discard()

    def _set_timer(self) -> None:
        """One for a whole poll as a rule: most answers come long before it, and it follows the later questions."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(self._until, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        if self._waiter is None or self._waiter.done():
            return
        if self._loop.time() < self._until:
            self._set_timer()
        else:
            self._waiter.set_result(False)

    def rest(self) -> None:
        """Until the next poll. What comes meanwhile is nobody's."""
        self._resting = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def wake(self) -> None:
        self._discard()
        self._resting = False

    def _discard(self) -> None:
        """Answers that came too late. A refusal (ICMP) is not worth more now."""
        try:
            for _ in range(_LATE_ANSWERS):
                self._tap.recv_into(self._head, 1)
        except OSError:
            return

    def _inspect(self) -> bool:
        """Keep from the library what it cannot take; an ICMP error shows up here, too.

        False when nothing is there: the loop told of the datagram before. The library must not look then
        either, for one that comes in between would reach it unseen.
        """
        try:
            length = self._tap.recv_into(self._head, 0, _PEEK)
        except BlockingIOError:
            return False
        if length > BUFFER_BYTES:
            fault = f"an answer of {length} bytes; this engine takes {BUFFER_BYTES}"
        elif not datagram.is_whole(self._head, length):
            fault = "the answer is not one whole SNMP message"
        elif self.wary and not datagram.is_sound(self._head[:length]):
            fault = "malformed answer"
        else:
            return True
        self._tap.recv_into(self._head, 1)  # consume it
        raise Garbled(f"SNMP with {self._agent} failed", cause=fault)

    def _check_status(self) -> None:
        """The library hides an agent's error status: read it from the datagram it just consumed."""
        status = datagram.error_status(self._head)
        if status:
            raise ErrorStatus(status)

    def close(self) -> None:
        """Idempotent."""
        if self._sock is not None:
            self.rest()
            self._loop.remove_reader(self._fd)
            self._tap.detach()  # the library closes the descriptor
            self._sock = None


def _family(ipv6: bool) -> socket.AddressFamily:
    return socket.AF_INET6 if ipv6 else socket.AF_INET


def _send(send: Callable[..., None], request: Any) -> None:
    try:
        send() if request is None else send(request)
    except BlockingIOError:  # a full send buffer is as good as a lost packet: the guard tries again
        return
