"""The default engine: gufo-snmp (Rust), taken at its socket level, one call per datagram instead of per row.

`_TRANSLATION` is the only place that knows the library's exceptions.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from typing import Any

import gufo.snmp
from gufo.snmp import _fast

from poller import errors
from poller.collectors import file_limit
from poller.collectors.snmp.engines.engine_protocol import Ask, ErrorStatus, Garbled, Page, Row
from poller.collectors.snmp.wire import codec, datagram, exchange, usm
from poller.collectors.snmp.wire.exchange import (
    VERSIONS,
    CommunitySpeech,
    OwnPdus,
    Question,
    Reported,
    Speech,
)
from poller.collectors.snmp.wire.udp import Listener

#: Longest reply the library can take; longer ones arrive cut off.
BUFFER_BYTES = 4080
_GET_AT_ONCE = 20
_PEEK = int(socket.MSG_PEEK | socket.MSG_TRUNC)


class Oversize(Garbled):
    """The answer does not fit the library's buffer."""


class Undecodable(Garbled):
    """The library could not read it, or did not survive the try."""


_TRANSLATION: dict[type[Exception], type[errors.DeviceError]] = {
    gufo.snmp.SnmpAuthError: errors.DeviceAuthFailed,
    gufo.snmp.SnmpDecodeError: Undecodable,
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
    if (short := file_limit.no_file_left(error, agent)) is not None:
        return short
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
    speech = CommunitySpeech(VERSIONS[version], community.encode(), OwnPdus())
    return GufoLink(sock, agent, speech, ipv6=":" in address, bulk=version != "1", wary=wary)


def endpoint(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


class GufoLink(Listener):
    """One UDP socket to one agent, for one poll at a time."""

    def __init__(
        self,
        sock: Any,
        agent: str,
        speech: Speech,
        *,
        ipv6: bool,
        bulk: bool = True,
        wary: bool = False,
    ) -> None:
        self._sock = sock
        # A second view of the descriptor, to look at a datagram before the library consumes it.
        super().__init__(socket.socket(_family(ipv6), socket.SOCK_DGRAM, 0, fileno=sock.get_fd()))
        self._agent = agent
        self._speech = speech
        self._bulk = bulk
        self.at_once = _GET_AT_ONCE if bulk else 1  # v1 refuses a whole GET for one missing OID
        self.exact = False
        #: The library stumbled over what this agent sends: it sees no more of it.
        self.wary = wary
        self._stumbles = 0
        self._ignored = 0  # datagrams that the library did not take for an answer
        #: Subtrees with answers that the library's buffer does not hold.
        self._too_big: set[str] = set()
        self._head = bytearray(datagram.HEAD_BYTES)
        self._length = 0  # of the datagram of which that is the head

    async def begin(self, ask: Ask) -> None:
        """v1 and v2c need no introduction."""

    async def page(self, cursor: str, root: str, repetitions: int, wait_s: float) -> Page:
        if self.exact or self.wary or root in self._too_big:
            return await self._own_page(cursor, root, repetitions, wait_s)
        try:
            return await self._page(cursor, root, repetitions, wait_s)
        except Oversize:
            self._too_big.add(root)
        except Undecodable:
            self._stumble()
        return await self._own_page(cursor, root, repetitions, self._until - self._loop.time())

    async def _page(self, cursor: str, root: str, repetitions: int, wait_s: float) -> Page:
        sock = self._sock
        within = _fast.GetIter(root)
        if self._bulk:
            request = _fast.GetIter(cursor, repetitions)
            rows = await self.exchange(
                sock.send_get_bulk, request, sock.recv_get_bulk, within, wait_s
            )
        else:
            request = _fast.GetIter(cursor)
            row = await self.exchange(
                sock.send_get_next, request, sock.recv_get_next, within, wait_s
            )
            rows = row and [row]
        if not rows:
            self._check_status()
            return Page((), ended=True)
        if rows[-1] is None:  # the library's mark for "left the subtree"
            rows.pop()
            return Page(rows, ended=True)
        return Page(rows, ended=False)

    async def get(self, oids: Sequence[str], wait_s: float) -> Sequence[Row]:
        if self.exact or self.wary:
            return await self._own_get(oids, wait_s)
        try:
            return await self._get(oids, wait_s)
        except Oversize:
            pass
        except Undecodable:
            self._stumble()
        return await self._own_get(oids, self._until - self._loop.time())

    async def _get(self, oids: Sequence[str], wait_s: float) -> Sequence[Row]:
        sock = self._sock
        values = await self.exchange(
            sock.send_get_many, list(oids), sock.recv_get_many, None, wait_s
        )
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
                    self._ignored += 1
        except StopAsyncIteration:
            return None
        except EXPECTED as error:
            raise translate(error, self._agent) from None
        except BaseException as error:
            if type(error).__name__ != "PanicException":
                raise
            self.wary = True
            raise Undecodable(f"SNMP with {self._agent} failed", cause="malformed answer") from None

    def _stumble(self) -> None:
        """Once may be a broken datagram; an agent that does it again is read without the library from now on."""
        self._stumbles += 1
        self.wary = self.wary or self._stumbles > 1

    async def after(self, oids: Sequence[str], wait_s: float) -> Sequence[str]:
        """Without the library, which asks for one at a time."""
        return exchange.names_of(await self._ask(Question(codec.GET_NEXT, oids), wait_s))

    async def _own_page(self, cursor: str, root: str, repetitions: int, wait_s: float) -> Page:
        question = exchange.walk_question(cursor, repetitions, bulk=self._bulk)
        return exchange.page_of(await self._ask(question, wait_s), root)

    async def _own_get(self, oids: Sequence[str], wait_s: float) -> Sequence[Row]:
        return exchange.there(await self._ask(Question(codec.GET, oids), wait_s))

    async def _ask(self, question: Question, wait_s: float) -> list[codec.Found]:
        """Without the library: exact types, up to 64 kB, and a request id that we know."""
        deadline = self._loop.time() + wait_s
        try:
            return await exchange.ask(
                self._speech, question, self._tap, lambda: self._until_readable(deadline)
            )
        except codec.Malformed as error:
            raise Garbled(f"SNMP with {self._agent} failed", cause=str(error)) from None
        except Reported as report:
            raise usm.refusal(report.which, self._agent) from None
        except OSError as error:
            raise translate(error, self._agent) from None

    def _inspect(self) -> bool:
        """Keep from the library what it cannot take; an ICMP error shows up here, too.

        False when nothing is there: the loop told of the datagram before. The library must not look then
        either, for one that comes in between would reach it unseen.
        """
        try:
            length = self._length = self._tap.recv_into(self._head, 0, _PEEK)
        except BlockingIOError:
            return False
        if length <= BUFFER_BYTES and datagram.is_whole(self._head, length):
            return True
        self._tap.recv(1)  # consume it
        if length > BUFFER_BYTES:
            fault = f"an answer of {length} bytes; this engine takes {BUFFER_BYTES}"
            raise Oversize(f"SNMP with {self._agent} failed", cause=fault)
        raise Garbled(
            f"SNMP with {self._agent} failed", cause="the answer is not one whole SNMP message"
        )

    def _check_status(self) -> None:
        """The library hides an agent's error status: read it from the datagram it just consumed."""
        status = datagram.error_status(self._head)
        if status:
            raise ErrorStatus(status)

    def close(self) -> None:
        """Idempotent."""
        if self._sock is not None:
            self._deaf()
            self._tap.detach()  # the library closes the descriptor
            self._sock = None


def _family(ipv6: bool) -> socket.AddressFamily:
    return socket.AF_INET6 if ipv6 else socket.AF_INET


def _send(send: Callable[..., None], request: Any) -> None:
    try:
        send() if request is None else send(request)
    except BlockingIOError:  # a full send buffer is as good as a lost packet: the guard tries again
        return
