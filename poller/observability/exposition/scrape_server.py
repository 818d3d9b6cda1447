"""A small HTTP server for Prometheus: `GET /metrics`, and nothing else.

It runs in a thread of a worker, a scheduler or a trap listener. Connections are few, short and
bounded, so that a client that never ends costs the process nothing.
"""

from __future__ import annotations

import hmac
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
#: Connections at the same time; one more is closed.
MOST_CONNECTIONS = 8
#: A connection is closed after this time, whatever it does.
CONNECTION_S = 10.0
READ_S = 5.0


@dataclass(frozen=True, slots=True)
class ScrapeAccess:
    """The right to scrape: the token, if there is one, and a Host header that is allowed."""

    token: str = ""
    allows_host: Callable[[str], bool] = lambda header: True


class ScrapeServer(ThreadingHTTPServer):
    """Listens at once. Raises OSError."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 16

    def __init__(
        self, address: tuple[str, int], render: Callable[[], bytes], access: ScrapeAccess
    ) -> None:
        self.render = render
        self.access = access
        self._open: dict[socket.socket, float] = {}
        self._lock = threading.Lock()
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, _Handler)

    def start(self) -> None:
        """Serve from a thread of its own."""
        threading.Thread(target=self.serve_forever, name="scrape-server", daemon=True).start()

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            is_full = len(self._open) >= MOST_CONNECTIONS
            if not is_full:
                self._open[request] = time.monotonic()
        if is_full:
            self.shutdown_request(request)
        else:
            super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Twice a second: end connections that are too old."""
        oldest_mono = time.monotonic() - CONNECTION_S
        with self._lock:
            late = [each for each, since_mono in self._open.items() if since_mono < oldest_mono]
        for request in late:
            with suppress(OSError):
                request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that went away."""


class _Handler(BaseHTTPRequestHandler):
    server: ScrapeServer
    timeout = READ_S
    server_version = "poller"
    sys_version = ""

    def do_GET(self) -> None:
        if self.path.partition("?")[0] != "/metrics":
            self._answer(404, b"not found: scrape /metrics\n")
        elif not self.server.access.allows_host(self.headers.get("Host", "")):
            self._answer(421, b"this is not a name of this service: use an address\n")
        elif not self._has_token():
            self._answer(401, b"a bearer token is required: metrics_token\n")
        else:
            self._answer(200, self.server.render(), CONTENT_TYPE)

    def _has_token(self) -> bool:
        token = self.server.access.token
        expected = f"Bearer {token}".encode()
        given = self.headers.get("Authorization", "").encode("utf-8", "replace")
        return not token or hmac.compare_digest(given, expected)

    def _answer(self, status: int, body: bytes, kind: str = "text/plain; charset=utf-8") -> None:
        self.send_response(status)
        if status == 401:
            self.send_header("WWW-Authenticate", "Bearer")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Scrapes are no log lines."""
