"""A Sentry server on loopback that takes envelopes as the real one does, and stores the events."""

from __future__ import annotations

import gzip
import json
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "0123456789abcdef0123456789abcdef"


class Ingest:
    """The server. As a context manager it listens; it responds after `answer_s`."""

    def __init__(self, answer_s: float = 0.0) -> None:
        self.events: list[dict[str, Any]] = []
        self.check_ins: list[dict[str, Any]] = []
        self.others: list[str] = []  # types of items that are neither
        self.bodies: list[bytes] = []
        self.paths: list[str] = []
        self._closing = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                outer._take(self.path, body)
                outer._closing.wait(answer_s)
                with suppress(OSError):  # whoever sent it may be gone
                    self.send_response(200)
                    self.send_header("Content-Length", "2")
                    self.end_headers()
                    self.wfile.write(b"{}")

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = int(self._server.server_address[1])
        self.dsn = f"http://{KEY}@127.0.0.1:{self.port}/42"

    def __enter__(self) -> Ingest:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()

    def wait_for(
        self, wanted: Callable[[dict[str, Any]], bool], within_s: float = 20
    ) -> dict[str, Any]:
        """Return the first event that matches."""
        until = time.monotonic() + within_s
        while True:
            for event in list(self.events):
                if wanted(event):
                    return event
            got = [(event.get("fingerprint"), event.get("logentry")) for event in self.events]
            assert time.monotonic() < until, (
                f"no such event within {within_s:g} s; there were {got}"
            )
            time.sleep(0.02)

    def _take(self, path: str, body: bytes) -> None:
        """Parse an envelope: a line of headers, then for each item a line of headers and its
        payload.
        """
        self.paths.append(path)
        self.bodies.append(body)
        _, _, rest = body.partition(b"\n")
        while rest:
            head, _, rest = rest.partition(b"\n")
            item = json.loads(head)
            payload, rest = rest[: item["length"]], rest[item["length"] + 1 :]
            if item["type"] == "event":
                self.events.append(json.loads(payload))
            elif item["type"] == "check_in":
                self.check_ins.append(json.loads(payload))
            else:
                self.others.append(item["type"])
