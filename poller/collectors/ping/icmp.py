"""One ICMP socket for all pings of a process: who asks is told about its answer, and nobody else's.

An answer counts if its sender, its identifier, its number and all of its data are those of a question under way.
While nothing comes nothing is done: no thread, no polling, one reader on the loop.
"""

from __future__ import annotations

import asyncio
import errno
import os
import select
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from poller.collectors.ping import icmp_packet, icmp_sockets
from poller.collectors.ping.icmp_packet import Echo
from poller.collectors.ping.options import LEAST_BYTES
from poller.collectors.ping.round_trips import Pace, Trips

#: So many datagrams are read before others have their turn on the loop.
_AT_A_TIME = 256
#: And after so many questions what has come is read: the kernel holds only so much for us.
_READ_AFTER = 32
_LARGEST = 9000 + 128
_FULL = (errno.EAGAIN, errno.ENOBUFS)
_FULL_PAUSE_S, _FULL_PAUSES = 0.005, 40

_Key = tuple[str, int]  # address, number


@dataclass(slots=True, eq=False)
class _Question:
    """One echo request under way."""

    payload: bytes
    sent_at: float  # not by the loop's clock: uvloop's has milliseconds
    sent_ns: int  # by the clock of the day, which is the kernel's for what it receives
    on_answer: Callable[[float], None]
    on_complaint: Callable[[str], None]


class Pings:
    """The socket of one family, on one loop. Raises OSError when the system does not allow one."""

    def __init__(self, family: int) -> None:
        self._door = icmp_sockets.opened(family)
        self._pending: dict[_Key, _Question] = {}
        self._sequence = int.from_bytes(os.urandom(2), "big")
        self._unread = 0
        # The loop watches this one in place of the socket: libuv gives up on a socket that has an error to tell.
        self._events = select.epoll()
        self._events.register(self._door.socket, select.EPOLLIN)
        self.loop = asyncio.get_running_loop()
        self.loop.add_reader(self._events.fileno(), self._on_events)

    def close(self) -> None:
        if not self.loop.is_closed():
            self.loop.remove_reader(self._events.fileno())
        self._events.close()
        self._door.socket.close()

    async def burst(self, where: tuple[Any, ...], pace: Pace, size: int) -> Trips:
        """Ask `pace.count` times and wait for the answers, no longer than the pace says."""
        asked = _Burst(self, where, pace, size)
        try:
            return await asked.run()
        finally:
            for key, question in asked.questions:
                if (
                    self._pending.get(key) is question
                ):  # not another's, that got the same number meanwhile
                    del self._pending[key]

    def send(self, where: tuple[Any, ...], question: _Question) -> _Key:
        """Raises OSError. The key under which its answer is waited for."""
        key = self._free_key(where[0])
        echo = Echo(self._door.identifier, key[1], question.payload)
        data = icmp_packet.request(self._door.family, echo, summed=self._door.sums)
        question.sent_at, question.sent_ns = time.perf_counter(), time.time_ns()
        self._pending[key] = question
        try:
            self._put(data, where)
        except OSError:
            del self._pending[key]
            raise
        self._unread += 1
        if self._unread >= _READ_AFTER:
            self._read_answers()
        return key

    def _free_key(self, address: str) -> _Key:
        while True:
            self._sequence = (self._sequence + 1) & 0xFFFF
            if (address, self._sequence) not in self._pending:
                return address, self._sequence

    def _put(self, data: bytes, where: tuple[Any, ...]) -> None:
        try:
            self._door.socket.sendto(data, where)
        except OSError as error:
            if error.errno in _FULL:
                raise
            # It may be what a router said of another question: that is told once, to whoever comes first.
            self._door.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            self._door.socket.sendto(data, where)

    def _on_events(self) -> None:
        for _, events in self._events.poll(0):
            if events & select.EPOLLERR:
                self._read_complaints()
            self._read_answers()

    def _read_answers(self) -> None:
        self._unread = 0
        for _ in range(_AT_A_TIME):
            try:
                data, ancillary, _, sender = self._door.socket.recvmsg(_LARGEST, 256)
            except BlockingIOError:
                return
            except OSError:  # somebody's complaint: it is read below, in full
                continue
            self._take(data, ancillary, sender)

    def _take(
        self, data: bytes, ancillary: icmp_sockets.Ancillary, sender: tuple[Any, ...]
    ) -> None:
        body = icmp_packet.without_ip_header(data) if self._door.sums else data
        echo = icmp_packet.reply(self._door.family, body)
        if echo is None or echo.identifier != self._door.identifier:
            return
        question = self._pending.get((sender[0], echo.sequence))
        if question is not None and question.payload == echo.payload:
            del self._pending[sender[0], echo.sequence]
            question.on_answer(self._trip_s(question, icmp_sockets.arrived_ns(ancillary)))

    def _trip_s(self, question: _Question, arrived_ns: int | None) -> float:
        """By the kernel's clock, which does not count how busy we were; unless somebody has set it meanwhile."""
        seen_s = time.perf_counter() - question.sent_at
        if arrived_ns is None:
            return seen_s
        kernel_s = (arrived_ns - question.sent_ns) / 1_000_000_000
        return kernel_s if 0 < kernel_s <= seen_s + 0.001 else seen_s

    def _read_complaints(self) -> None:
        for _ in range(_AT_A_TIME):
            try:
                data, ancillary, _, asked = self._door.socket.recvmsg(
                    _LARGEST, 512, socket.MSG_ERRQUEUE
                )
            except OSError:
                return
            echo = icmp_packet.asked(self._door.family, data)
            if echo is None or echo.identifier != self._door.identifier or not asked:
                continue
            question = self._pending.pop((asked[0], echo.sequence), None)
            if question is not None:
                question.on_complaint(icmp_sockets.complaint(ancillary))


class _Burst:
    """The questions of one poll."""

    def __init__(self, pings: Pings, where: tuple[Any, ...], pace: Pace, size: int) -> None:
        self.questions: list[tuple[_Key, _Question]] = []
        self._pings, self._where, self._pace = pings, where, pace
        self._padding = bytes(size - LEAST_BYTES)
        self._seconds: list[float] = []
        self._told = ""
        self._open = pace.count
        self._over: asyncio.Future[None] = pings.loop.create_future()

    async def run(self) -> Trips:
        loop, began = self._pings.loop, self._pings.loop.time()
        for number in range(self._pace.count):
            if number:
                await asyncio.sleep(began + number * self._pace.interval_s - loop.time())
            await self._ask()
        try:
            async with asyncio.timeout(self._pace.patience_s):
                await self._over
        except TimeoutError:
            pass
        return Trips(self._pace.count, self._seconds, self._told)

    async def _ask(self) -> None:
        question = _Question(
            os.urandom(LEAST_BYTES) + self._padding, 0.0, 0, self._answered, self._complained
        )
        for _ in range(_FULL_PAUSES):
            try:
                self.questions.append((self._pings.send(self._where, question), question))
                return
            except OSError as error:
                if error.errno not in _FULL:
                    self._complained(os.strerror(error.errno or 0))
                    return
            await asyncio.sleep(_FULL_PAUSE_S)
        self._complained("this system's network is too busy to send")

    def _answered(self, trip_s: float) -> None:
        if trip_s <= self._pace.patience_s:  # else it was lost before it came
            self._seconds.append(trip_s)
        self._one_less()

    def _complained(self, text: str) -> None:
        self._told = text
        self._one_less()

    def _one_less(self) -> None:
        self._open -= 1
        if not self._open and not self._over.done():
            self._over.set_result(None)
