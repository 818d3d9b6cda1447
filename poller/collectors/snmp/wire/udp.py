"""Waiting on one UDP socket for the next datagram, with one timer for a whole poll. Knows no protocol."""

from __future__ import annotations

import asyncio
import socket

from poller.collectors.snmp.engines.engine_protocol import NoReply

#: So many are thrown away at a time, so that a flood stops nobody else.
_LATE_ANSWERS = 64


class Listener:
    """Of a connected socket that does not block. Rests between polls, and hears nothing then."""

    def __init__(self, tap: socket.socket) -> None:
        self._tap = tap
        self._loop = asyncio.get_running_loop()
        self._waiter: asyncio.Future[bool] | None = None
        self._until = 0.0  # the waiter's patience
        self._timer: asyncio.TimerHandle | None = None
        self._resting = False
        self._fd = tap.fileno()
        self._loop.add_reader(self._fd, self._on_readable)

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
                self._tap.recv(1)
        except OSError:
            return

    def _deaf(self) -> None:
        """For good: the descriptor is about to be closed."""
        self.rest()
        self._loop.remove_reader(self._fd)
