"""A store of an HTTP sink on a loopback port, which fails when a test says so.

    with FakeHttpStore() as store:
        sink.write(samples)         # to store.url
        store.lose_answer()         # the next request is stored, its answer is lost

It takes every POST and answers with `status` and `body`; `bodies` has what it took.
"""

from __future__ import annotations

import enum
import socket
import struct
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

#: A slow store answers after this time, or when it recovers.
SLOW_S = 30.0
RETRY_AFTER_S = 7
#: How soon the server notices its end.
POLL_S = 0.02


class HttpFault(enum.Enum):
    """A fault that the store makes of requests."""

    DOWN = "down"
    SLOW = "slow"
    BUSY = "busy"
    REFUSING = "refusing"
    CUT_REQUEST = "cut_request"  # only the next one
    LOSE_ANSWER = "lose_answer"  # only the next one


@dataclass(frozen=True, slots=True)
class StoredRequest:
    """A request that the store took."""

    path: str
    headers: Mapping[str, str]
    body: bytes


class FakeHttpStore:
    """The store. Use it in a `with` statement."""

    def __init__(self, status: int = 204, body: bytes = b"") -> None:
        self.status = status
        self.body = body
        self.requests: list[StoredRequest] = []
        self.fault: HttpFault | None = None
        self._recovered = threading.Event()
        self._server = _Server(self)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(POLL_S,), daemon=True
        )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def bodies(self) -> set[bytes]:
        """The different bodies that were stored: a repeated request counts once."""
        return {request.body for request in self.requests}

    def down(self) -> None:
        """Close every connection without an answer."""
        self._fail(HttpFault.DOWN)

    def slow(self) -> None:
        """Take requests, and answer them only after SLOW_S."""
        self._fail(HttpFault.SLOW)

    def busy(self) -> None:
        """Answer 429 with `Retry-After`, and take nothing."""
        self._fail(HttpFault.BUSY)

    def refuse(self) -> None:
        """Answer 400: the samples are not acceptable, now and later."""
        self._fail(HttpFault.REFUSING)

    def cut_request(self) -> None:
        """Close the connection in the middle of the next request, and take nothing of it."""
        self._fail(HttpFault.CUT_REQUEST)

    def lose_answer(self) -> None:
        """Take the next request, and close the connection in the middle of the answer."""
        self._fail(HttpFault.LOSE_ANSWER)

    def recover(self) -> None:
        """Take requests again."""
        self.fault = None
        self._recovered.set()

    def wait_for_recovery(self) -> None:
        self._recovered.wait(SLOW_S)

    def _fail(self, fault: HttpFault) -> None:
        self._recovered.clear()
        self.fault = fault

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.recover()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, store: FakeHttpStore) -> None:
        self.store = store
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: clients end connections that a fault holds."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        store = self.server.store
        length = int(self.headers.get("Content-Length", 0))
        if store.fault is HttpFault.DOWN:
            self._reset()
        elif store.fault is HttpFault.CUT_REQUEST:
            store.recover()
            self.rfile.read(length // 2)
            self._reset()
        else:
            self._take(StoredRequest(self.path, dict(self.headers), self.rfile.read(length)))

    do_GET = do_POST
    do_PUT = do_POST

    def _take(self, request: StoredRequest) -> None:
        store = self.server.store
        fault = store.fault
        if fault is HttpFault.BUSY:
            self._answer(429, b"too many requests", {"Retry-After": str(RETRY_AFTER_S)})
        elif fault is HttpFault.REFUSING:
            self._answer(400, b"a sample is not acceptable")
        else:
            if request.body:
                store.requests.append(request)
            if fault is HttpFault.LOSE_ANSWER:
                store.recover()
                self.wfile.write(b"HTTP/1.1 2")
                self._reset()
                return
            if fault is HttpFault.SLOW:
                store.wait_for_recovery()
            self._answer(store.status, store.body)

    def _answer(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if status != 204:
            self.wfile.write(body)

    def _reset(self) -> None:
        """Close the connection at once, without the end of a stream that a client may wait for."""
        self.close_connection = True
        with suppress(OSError):
            linger = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, format: str, *args: Any) -> None:
        """Write nothing to stderr."""
