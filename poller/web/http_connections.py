"""The connections of the web server: a client that never finishes is cut, others are served.

uvicorn waits for ever for the rest of a request and for a client that does not read.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, Protocol

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from poller.observability import logs
from poller.web.exporter import recent_scrapes
from poller.web.exporter.recent_scrapes import HEAD, RecentScrapes

log = logs.get(__name__)

#: Time for the whole head of a request, also of the next one on a connection that stays open.
HEAD_S = 10.0
#: While a body is being sent, the client sends LEAST_BODY bytes in each such time, or its rest.
BODY_S = 10.0
LEAST_BODY = 10_000
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


class Unfinished(Protocol):
    """A connection that can be closed at once."""

    def cut(self) -> None: ...


class WaitingConnections:
    """The connections of one server that have not sent a complete request, oldest first."""

    def __init__(
        self, most: int = MOST_WAITING, head_s: float = HEAD_S, body_s: float = BODY_S
    ) -> None:
        self._most = most
        self.head_s = head_s
        self.body_s = body_s
        self._waiting: dict[Unfinished, None] = {}
        self._cut = 0
        self._log_mono = 0.0

    def add(self, connection: Unfinished) -> None:
        """Wait for a request; if too many wait, cut the one that waited longest."""
        self._waiting[connection] = None
        if len(self._waiting) > self._most:
            oldest = next(iter(self._waiting))
            self.remove(oldest)
            oldest.cut()
            self._count_cut()

    def remove(self, connection: Unfinished) -> None:
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

    def __init__(
        self,
        *args: Any,
        waiting: WaitingConnections,
        scrapes: RecentScrapes | None = None,
        **more: Any,
    ) -> None:
        super().__init__(*args, **more)
        self._waiting = waiting
        self._scrapes = scrapes
        self._head_timer: asyncio.TimerHandle | None = None
        self._read_timer: asyncio.TimerHandle | None = None
        self._body_timer: asyncio.TimerHandle | None = None
        self._body_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait_for_request()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_wait()
        self._stop_read_timer()
        self._stop_body_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._scrapes is not None and self._answer_scrape(self._scrapes, data):
            return
        is_scrape = self._scrapes is not None and recent_scrapes.is_head(data)
        super().data_received(data)
        if is_scrape and self._is_responding:
            # The task of the request runs later: its route can keep the head.
            self.scope["extensions"] = {HEAD: {"bytes": data}}
        if self._is_responding:
            self._end_wait()
        self._watch_body(len(data))

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

    def _answer_scrape(self, scrapes: RecentScrapes, head: bytes) -> bool:
        """Answer a repeated scrape on a connection between two requests. False if it is none."""
        if self.client is None or not scrapes.is_repeated(head, self.client[0]):
            return False
        is_idle = self.conn.our_state is h11.IDLE and self.conn.their_state is h11.IDLE
        if not is_idle or self._is_responding or self.conn.trailing_data[0]:
            return False
        if self.flow.write_paused or self.transport.is_closing():
            return False
        response = scrapes.response(head, self.client[0])
        if response is None:
            return False
        self._unset_keepalive_if_required()
        self.server_state.total_requests += 1
        self.transport.write(response)
        self._wait_for_request()
        keep_s, close = self.timeout_keep_alive, self.timeout_keep_alive_handler
        self.timeout_keep_alive_task = self.loop.call_later(keep_s, close)
        return True

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

    def _watch_body(self, received: int) -> None:
        """Count the bytes of a body that is not complete; its first bytes start the clock."""
        self._body_bytes += received
        if not self._is_responding or self.conn.their_state is not h11.SEND_BODY:
            self._stop_body_timer()
        elif self._body_timer is None:
            self._start_body_timer()

    def _start_body_timer(self) -> None:
        self._body_bytes = 0
        self._body_timer = self.loop.call_later(self._waiting.body_s, self._check_body)

    def _check_body(self) -> None:
        """Cut a client that sent too little, unless it waits for the application to read."""
        self._body_timer = None
        if not self._is_responding or self.conn.their_state is not h11.SEND_BODY:
            return
        if self._body_bytes < LEAST_BODY and not self.flow.read_paused:
            self.cut()
        else:
            self._start_body_timer()

    def _stop_body_timer(self) -> None:
        if self._body_timer is not None:
            self._body_timer.cancel()
            self._body_timer = None

    def _stop_read_timer(self) -> None:
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None
