"""One TCP connection to a router: decodes sentences, sends answers and injects faults.

Answers wait while the client does not read. A client that reads nothing is disconnected.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import socket
import struct
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, cast

from poller.sim import garbled_replies, sockets
from poller.sim.fleet import Fault
from poller.sim.routeros import reply_pieces, sentence_framing
from poller.sim.routeros.injected_faults import Accident, Mishap
from poller.sim.routeros.router_session import NEVER, Session

if TYPE_CHECKING:
    from poller.sim.routeros.routeros_server import RouterOsServer

STALL = 0.1  # share of the commands to a lossy router that are never answered
RESET = 0.1  # share of the commands to a lossy router that end the connection
PER_PASS = 16  # commands of one client before other clients are served
UNREAD_SECONDS = 5.0  # the time within which a client must read an answer
_SENT_SECONDS = 0.02  # the time in which written data has left this process
_NO_LINGER = struct.pack("ii", 1, 0)


class Connection(asyncio.Protocol):
    """A client of one router, chosen by the local address of the connection."""

    def __init__(self, server: RouterOsServer) -> None:
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._decoder = sentence_framing.Decoder()
        self._waiting: collections.deque[sentence_framing.Sentence] = collections.deque()
        self._stalled = False  # never answers again
        self._busy = False  # a slow command is under way
        self._late = False  # the rest of an answer is delayed: nothing else is sent before
        self._unread = False
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's does not derive from it
        peer, local = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
        router = self._server.routers.get(local[0]) if local else None
        if router is None or not peer or not peer[0].startswith(sockets.LOOPBACK):
            self.abort()
            return
        self._server.open_connections.add(self)
        self.router = router
        self._session = Session(router, self._server.dice.randbytes(16))
        self._stalled = router.device.fault is Fault.DOWN
        self.stall_in(self._server.dark)
        left = router.life.until_reboot(self._server.clock.now())
        if left is not None and self._server.clock.rate:
            self._later("reboot", left / self._server.clock.rate, self.abort)
        self._wait_for_more()

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.open_connections.discard(self)
        for timer in self._timers.values():
            timer.cancel()

    def abort(self) -> None:
        """Reset the connection. Without SO_LINGER the peer would see an orderly close."""
        sock = self._transport.get_extra_info("socket")
        if sock is not None:
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        self._transport.abort()

    def hang_up(self) -> None:
        self._transport.close()

    def stall_in(self, sites: Collection[str]) -> None:
        self._stalled = self._stalled or self.router.device.site in sites

    # Input from the client.

    def data_received(self, data: bytes) -> None:
        if self._stalled or self._transport.is_closing():
            return
        if self.router.device.fault is Fault.GARBAGE:
            self._transport.write(garbled_replies.garble(b"\x05!done\0", self._server.dice))
            return
        self._wait_for_more()
        try:
            self._waiting.extend(self._decoder.feed(data))
        except sentence_framing.Malformed:
            self.abort()
            return
        self._work()

    def _work(self) -> None:
        """Handle a few commands, so that a client with thousands does not delay others."""
        for _ in range(min(PER_PASS, len(self._waiting))):
            if self._busy or self._late or self._unread or self._stalled:
                break
            self._handle(self._waiting.popleft())
        if self._stalled or self._transport.is_closing():
            self._waiting.clear()
            return
        self._send_output()

    def _handle(self, sentence: sentence_framing.Sentence) -> None:
        self._server.commands += 1
        fault = self.router.device.fault
        if fault is Fault.LOSSY and self._is_lost():
            return
        if fault is Fault.SLOW:
            self._busy = True
            delay = self.router.device.slow_seconds * self._server.dice.uniform(0.5, 1.5)
            self._later("slow", delay, self._handle_late, sentence)
            return
        command = sentence[0].decode("utf-8", "replace")
        accident = self._server.accidents.take(self.router.device.address, command)
        if accident is not None:
            self._inject(accident, sentence)
        else:
            self._session.receive(sentence)

    def _handle_late(self, sentence: sentence_framing.Sentence) -> None:
        self._busy = False
        self._session.receive(sentence)
        self._work()

    def _is_lost(self) -> bool:
        luck = self._server.dice.random()
        self._stalled = luck < STALL + RESET
        if STALL <= luck < STALL + RESET:
            self.abort()
        return self._stalled

    # Output of the router.

    def _send_output(self) -> None:
        if self._late or self._unread:
            return
        output = self._session.next_output(self._server.clock.now(), self._loop.time())
        if output:
            self._transport.write(output)
        ready_at = self._session.ready_at
        if self._session.closed and ready_at == NEVER:
            self.hang_up()
        elif ready_at <= self._loop.time() or (self._waiting and not self._busy):
            self._transport.pause_reading()
            self._loop.call_soon(self._work)
        elif not self._waiting and not self._transport.is_closing():
            self._transport.resume_reading()
            if ready_at != NEVER:
                self._later("more", ready_at - self._loop.time(), self._work)

    def pause_writing(self) -> None:
        self._unread = True
        self._later("unread", UNREAD_SECONDS, self.abort)

    def resume_writing(self) -> None:
        self._unread = False
        self._timers.pop("unread").cancel()
        self._work()

    # Injected faults.

    def _inject(self, accident: Accident, sentence: sentence_framing.Sentence) -> None:
        if accident.mishap is Mishap.FATAL:
            self._transport.write(reply_pieces.sentence(b"\0", "!fatal", accident.text)[0])
            self.hang_up()
            return
        if accident.mishap is Mishap.TRAP:
            refusal = reply_pieces.refused(
                reply_pieces.parse(sentence), reply_pieces.Trap(accident.text)
            )
            self._transport.write(reply_pieces.joined(refusal)[0])
            return
        self._session.receive(sentence)
        whole = self._session.next_output(self._server.clock.now(), self._loop.time())
        self._transport.write(whole[: accident.after])
        self._break(accident, whole)

    def _break(self, accident: Accident, whole: bytes) -> None:
        match accident.mishap:
            case Mishap.RESET:
                self._stalled = True
                self._later("reset", _SENT_SECONDS, self.abort)
            case Mishap.CLOSE:
                self.hang_up()
            case Mishap.GARBAGE:
                self._transport.write(garbled_replies.garble(whole, self._server.dice))
            case _ if accident.seconds is None:
                self._stalled = True
            case _:
                self._late = True
                self._later("late", accident.seconds, self._send_rest, whole[accident.after :])

    def _send_rest(self, rest: bytes) -> None:
        self._late = False
        self._transport.write(rest)
        self._work()

    # Timers.

    def _later(
        self, what: str, seconds: float, do: Callable[..., object], *arguments: object
    ) -> None:
        before = self._timers.pop(what, None)
        if before is not None:
            before.cancel()
        self._timers[what] = self._loop.call_later(seconds, do, *arguments)

    def _wait_for_more(self) -> None:
        """Restart the idle timer of a router that has an idle limit."""
        if self.router.device.idle_seconds:
            self._later("idle", self.router.device.idle_seconds, self.hang_up)
