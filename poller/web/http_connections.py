"""The connections of the web server: a client that never finishes is cut, others are served.

uvicorn waits for ever for the rest of a request and for a client that does not read.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from poller.observability import logs

log = logs.get(__name__)

#: Time for the whole head of a request, also of the next one on a connection that stays open.
HEAD_S = 10.0
#: Time for a client that does not read to take some bytes of its response.
READ_S = 30.0
#: Connections without a complete request; one more cuts the oldest of them.
MOST_WAITING = 250
#: Requests at the same time, beyond the streams of live pages; one more gets 503.
MOST_REQUESTS = 250
_LOG_EVERY_S = 60.0


def limit(most_streams: int) -> int:
    """The connections a server holds, for uvicorn's `limit_concurrency`."""
    return MOST_WAITING + MOST_REQUESTS + most_streams


class WaitingConnections:
    """The connections of one server that have not sent a complete request, oldest first."""

    def __init__(self, most: int = MOST_WAITING, head_s: float = HEAD_S) -> None:
        self._most = most
        self.head_s = head_s
        self._waiting: dict[LimitedProtocol, None] = {}
        self._cut = 0
        self._log_mono = 0.0

    def add(self, connection: LimitedProtocol) -> None:
        """Wait for a request; if too many wait, cut the one that waited longest."""
        self._waiting[connection] = None
        if len(self._waiting) > self._most:
            oldest = next(iter(self._waiting))
            self.remove(oldest)
            oldest.cut()
            self._count_cut()

    def remove(self, connection: LimitedProtocol) -> None:
        self._waiting.pop(connection, None)

    def _count_cut(self) -> None:
        """Log a flood at most once a minute."""
        self._cut += 1
        now_mono = time.monotonic()
        if now_mono >= self._log_mono:
            log.warning("unfinished_requests_cut", connections=self._cut, most=self._most)
            self._log_mono = now_mono + _LOG_EVERY_S
            self._cut = 0


class LimitedProtocol(H11Protocol):
    """One connection. Bytes that complete no request do not prolong its time."""

    def __init__(self, *args: Any, waiting: WaitingConnections, **more: Any) -> None:
        super().__init__(*args, **more)
        self._waiting = waiting
        self._head_timer: asyncio.TimerHandle | None = None
        self._read_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait_for_request()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_wait()
        self._stop_read_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_responding:
            self._end_wait()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self._is_responding:  # a pipelined request may have begun
            self._wait_for_request()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stop_read_timer()
        self._read_timer = self.loop.call_later(READ_S, self.cut)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_read_timer()

    def cut(self) -> None:
        """Close now, without the bytes that the client does not read."""
        self.transport.abort()

    @property
    def _is_responding(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _wait_for_request(self) -> None:
        self._end_wait()
        self._head_timer = self.loop.call_later(self._waiting.head_s, self.cut)
        self._waiting.add(self)

    def _end_wait(self) -> None:
        self._waiting.remove(self)
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _stop_read_timer(self) -> None:
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None
