"""Request and response on one connected UDP socket, in our own codec.

A `Framing` wraps a PDU for its protocol version. `CodecLink` sends a request and waits for the
response with its id; any other datagram is ignored. Retries and sizes belong to `read.walker`.
"""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from poller import errors
from poller.collectors import file_limit
from poller.collectors.snmp.engines.engine_protocol import (
    ErrorStatus,
    Garbled,
    NoReply,
    Page,
    PreparedRequest,
    Retry,
    Row,
    Silence,
)
from poller.collectors.snmp.wire import codec, usm
from poller.collectors.snmp.wire.codec import Malformed, Missing, Pdu, VarBind
from poller.collectors.snmp.wire.value_types import Value

#: The version field of a message, by the name of the option `version`.
VERSIONS = {"1": 0, "2c": 1}
_MAX_GET_OIDS = 20
_MAX_DATAGRAM = 65_535
#: Clock corrections per request: one is usual after an idle time or a restart of the agent.
_MAX_RESYNCS = 2
#: Late datagrams dropped per wake-up, so that a flood cannot stall the event loop.
_DISCARDED_AT_ONCE = 64
_random = random.SystemRandom()


class Request(NamedTuple):
    """A request before it has an id and a message around it."""

    kind: int
    oids: Sequence[str]
    non_repeaters: int = 0
    max_repetitions: int = 0

    def pdu(self, request_id: int) -> bytes:
        """The request in BER."""
        return codec.request(
            self.kind, request_id, self.non_repeaters, self.max_repetitions, self.oids
        )


class ReportReceived(Exception):
    """The agent sent a report instead of a response.

    `report` is one of `v3_message.REPORTS`; `resend` says that the clock is corrected now.
    """

    def __init__(self, report: int, resend: bool) -> None:
        super().__init__(report, resend)
        self.report = report
        self.resend = resend


class Framing(Protocol):
    """Wraps PDUs in the messages of one protocol version, with its authentication."""

    def encode(self, request: Request, request_id: int) -> bytes: ...

    def decode(self, data: bytes) -> Pdu | None:
        """The response in a datagram; None for a foreign one. Raises Malformed, ReportReceived."""
        ...


class CommunityFraming:
    """Messages of SNMP v1 and v2c. Never printed: it holds the community."""

    def __init__(self, version: int, community: bytes) -> None:
        self._version = version
        self._community = community

    def encode(self, request: Request, request_id: int) -> bytes:
        pdu = request.pdu(request_id)
        return codec.message(self._version, self._community, pdu)

    def decode(self, data: bytes) -> Pdu | None:
        version, community, at = codec.open_message(data)
        if version != self._version or community != self._community:
            return None
        return codec.read_pdu(data, at, len(data))


class UdpReader:
    """Waits for datagrams on a connected, non-blocking socket. One timer serves a whole poll."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._fd = sock.fileno()
        self._loop = asyncio.get_running_loop()
        self._waiter: asyncio.Future[bool] | None = None
        self._deadline = 0.0  # of the waiter
        self._timer: asyncio.TimerHandle | None = None
        self._paused = False
        self._loop.add_reader(self._fd, self._on_readable)

    async def _wait_readable(self, deadline: float) -> None:
        """Wait for a datagram. Raises NoReply at the deadline."""
        # A flood keeps the socket readable, so the timer alone would never end the wait.
        if self._loop.time() >= deadline:
            raise NoReply("no answer")

        self._waiter = self._loop.create_future()
        self._deadline = deadline
        if self._timer is None or self._timer.when() > deadline:
            self._set_timer()
        try:
            if not await self._waiter:
                raise NoReply("no answer")
        finally:
            self._waiter = None

    def _on_readable(self) -> None:
        """Wake the waiter; between polls, drop the datagram."""
        if self._waiter is not None:
            if not self._waiter.done():
                self._waiter.set_result(True)
        elif self._paused:
            self._discard()

    def _set_timer(self) -> None:
        """Set the timer to the waiter's deadline."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(self._deadline, self._on_timer)

    def _on_timer(self) -> None:
        """End the wait, or set the timer again for a later request's deadline."""
        self._timer = None
        if self._waiter is None or self._waiter.done():
            return
        if self._loop.time() < self._deadline:
            self._set_timer()
        else:
            self._waiter.set_result(False)

    def pause(self) -> None:
        """Drop every datagram until `resume`: between polls each one is late."""
        self._paused = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def resume(self) -> None:
        self._discard()
        self._paused = False

    def _discard(self) -> None:
        """Drop late datagrams and pending ICMP errors."""
        try:
            for _ in range(_DISCARDED_AT_ONCE):
                self._socket.recv(1)
        except OSError:
            return

    def _stop_reading(self) -> None:
        """Detach from the event loop, before the descriptor is closed."""
        self.pause()
        self._loop.remove_reader(self._fd)


class CodecLink(UdpReader):
    """A link that encodes and decodes by itself: exact types, responses of up to 64 kB."""

    exact = True
    codec_only = False
    received = 0
    silence = Silence()

    def __init__(self, sock: socket.socket, agent: str, framing: Framing, *, bulk: bool) -> None:
        super().__init__(sock)
        self._agent = agent
        self._framing = framing
        self._bulk = bulk
        self.max_get_oids = _MAX_GET_OIDS if bulk else 1  # v1 fails a whole GET for one absent OID

    async def handshake(self, retry: Retry) -> None:
        """SNMP v1 and v2c need no handshake."""

    async def page(self, cursor: str, root: str, repetitions: int, wait_s: float) -> Page:
        if self._bulk:
            request = Request(codec.GET_BULK, (cursor,), max_repetitions=repetitions)
        else:
            request = Request(codec.GET_NEXT, (cursor,))
        return _page(await self._request(request, wait_s), root)

    async def get(self, oids: Sequence[str], wait_s: float) -> Sequence[Row]:
        rows: list[Row] = []
        for name, value in await self._request(Request(codec.GET, oids), wait_s):
            if value is not None and not isinstance(value, Missing):
                rows.append((name, value))
        return rows

    async def next_oids(self, oids: Sequence[str], wait_s: float) -> Sequence[str]:
        names: list[str] = []
        for name, value in await self._request(Request(codec.GET_NEXT, oids), wait_s):
            ended = value is Missing.END_OF_VIEW
            names.append("" if ended else name)
        return names

    @property
    def replays(self) -> bool:
        return False

    def send_prepared(self, request: PreparedRequest) -> int:
        raise NotImplementedError("only a link that `replays` has prepared requests")

    async def receive_prepared(
        self, pending: Mapping[int, PreparedRequest], wait_s: float
    ) -> tuple[int, list[Value] | None]:
        raise NotImplementedError("only a link that `replays` has prepared requests")

    async def _request(self, request: Request, wait_s: float) -> list[VarBind]:
        """Send a request, again after each correction of the clock. Raises DeviceErrors."""
        deadline = self._loop.time() + wait_s
        resyncs = 0
        try:
            while True:
                try:
                    return await self._roundtrip(request, deadline)
                except ReportReceived as received:
                    resyncs += 1
                    if not received.resend or resyncs > _MAX_RESYNCS:
                        raise usm.refusal(received.report, self._agent) from None
        except Malformed as error:
            raise Garbled(f"SNMP with {self._agent} failed", cause=str(error)) from None
        except OSError as error:
            raise socket_error(error, self._agent) from None

    async def _roundtrip(self, request: Request, deadline: float) -> list[VarBind]:
        """Send a request once and wait for its response."""
        request_id = _random.getrandbits(31)
        self._send(self._framing.encode(request, request_id))

        while True:
            pdu = self._framing.decode(await self._receive(deadline))
            if pdu is None or pdu.request_id != request_id or pdu.kind != codec.RESPONSE:
                continue  # foreign, or the response to an earlier attempt
            if pdu.status:
                raise ErrorStatus(pdu.status)
            return pdu.rows

    def _send(self, data: bytes) -> None:
        """Send one datagram."""
        try:
            self._socket.send(data)
        except BlockingIOError:  # a full send buffer equals a lost packet: the walker retries
            return

    async def _receive(self, deadline: float) -> bytes:
        """The next datagram. Raises NoReply at the deadline."""
        while True:
            await self._wait_readable(deadline)
            try:
                data = self._socket.recv(_MAX_DATAGRAM)
            except BlockingIOError:  # another reader has consumed the datagram
                continue
            self.received += len(data)
            return data

    def close(self) -> None:
        """Idempotent."""
        if self._socket.fileno() >= 0:
            self._stop_reading()
            self._socket.close()


def _page(varbinds: Sequence[VarBind], root: str) -> Page:
    """The rows within the subtree, and whether the response shows its end."""
    beneath = root + "."
    rows: list[Row] = []
    for name, value in varbinds:
        if value is Missing.END_OF_VIEW or not (name.startswith(beneath) or name == root):
            return Page(rows, ended=True)
        if value is not None and not isinstance(value, Missing):
            rows.append((name, value))
    return Page(rows, ended=not rows)


def socket_error(error: OSError, agent: str) -> errors.DeviceError:
    """A socket's error as one of ours: no file left, refused by ICMP, or no route."""
    shortage = file_limit.no_file_left(error, agent)
    if shortage is not None:
        return shortage

    if isinstance(error, TimeoutError | ConnectionRefusedError):
        cause = "no SNMP agent listens on that port"
        return errors.DeviceUnreachable(f"{agent} refused the connection", cause=cause)
    # What follows a colon may be a piece of the datagram, and a datagram contains the community.
    cause = str(error).partition(":")[0]
    return errors.DeviceUnreachable(f"SNMP with {agent} failed", cause=cause)
