"""A small receiver of remote write that decodes strictly and answers as a test tells it to."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

from tests import remote_write_messages
from tests.remote_write_messages import Received

V2_TYPE = "application/x-protobuf;proto=io.prometheus.write.v2.Request"


class Answer(NamedTuple):
    status: int = 204
    body: str = ""
    headers: Mapping[str, str] = {}


class Delivered(NamedTuple):
    """One request: its version of remote write, its headers (lower case) and its samples."""

    version: str
    headers: Mapping[str, str]
    samples: list[Received]


Answering = Callable[[Delivered], Answer]


def takes(delivered: Delivered) -> Answer:
    """Take everything, as a receiver of 2.0 does."""
    if delivered.version == "1.0":
        return Answer()
    return Answer(
        headers={"X-Prometheus-Remote-Write-Samples-Written": str(len(delivered.samples))}
    )


class Receiver:
    def __init__(self, answering: Answering) -> None:
        self.answering = answering
        self.requests: list[Delivered] = []
        self.faults: list[str] = []
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/api/v1/write"

    @property
    def samples(self) -> list[Received]:
        return [sample for request in self.requests for sample in request.samples]

    def receive(self, headers: Mapping[str, str], body: bytes) -> Answer:
        try:
            assert headers["content-encoding"] == "snappy"
            is_v2 = headers["content-type"] == V2_TYPE
            assert is_v2 or headers["content-type"] == "application/x-protobuf"
            stated = headers["x-prometheus-remote-write-version"]
            assert stated == ("2.0.0" if is_v2 else "0.1.0")
            version = "2.0" if is_v2 else "1.0"
            samples = remote_write_messages.decode(body, version)
        except Exception as error:
            self.faults.append(repr(error))
            return Answer(500, repr(error))
        delivered = Delivered(version, headers, samples)
        self.requests.append(delivered)
        return self.answering(delivered)


@contextmanager
def receiving(answering: Answering = takes) -> Iterator[Receiver]:
    """Run a receiver. A request that does not follow the protocol fails the test at the end."""
    receiver = Receiver(answering)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            headers = {name.lower(): text for name, text in self.headers.items()}
            body = self.rfile.read(int(headers["content-length"]))
            answer = receiver.receive(headers, body)
            content = answer.body.encode()
            self.send_response(answer.status)
            for name, text in answer.headers.items():
                self.send_header(name, text)
            if answer.status != 204:
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    receiver.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert receiver.faults == []
