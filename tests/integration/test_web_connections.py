"""The web server serves others while clients hold streams open, stop half-way or do not read."""

from __future__ import annotations

import socket
import ssl
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from poller.web import http_connections, web_process
from poller.web.backend_queries import BackendQueries
from poller.web.http_connections import WaitingConnections
from tests.conftest import wait_until
from tests.integration import web_servers

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "web"))

import web_overviews as fleet

HALF = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "
STREAM = b"GET /api/stream HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
MOST_WAITING = 20
MOST_STREAMS = 2


@pytest.fixture
def port() -> Iterator[int]:
    """A server with small limits: 20 unfinished requests for half a second, two streams."""
    yield from served()


@pytest.fixture
def body_port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A server of an application that reads whole bodies, before it answers."""

    async def reader(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            body = await Request(scope, receive).body()
            await PlainTextResponse(f"{len(body)} bytes")(scope, receive, send)

    monkeypatch.setattr(web_process, "create_app", lambda *_: reader)
    yield from served()


@pytest.fixture
def tls_port(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[tuple[int, Path]]:
    """A server with TLS that says hello, and the file of its certificate."""

    async def hello(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await PlainTextResponse(f"hello by {scope['scheme']}")(scope, receive, send)

    hello.state = SimpleNamespace(exporter=SimpleNamespace(recent=None))  # type: ignore[attr-defined]
    monkeypatch.setattr(web_process, "create_app", lambda *_: hello)
    certificate = web_servers.identity(tmp_path).ca_file
    settings = SimpleNamespace(
        web_tls_cert=str(certificate), web_tls_key=str(certificate.with_suffix(".key"))
    )
    for port in served(SimpleNamespace(settings=settings)):
        yield port, certificate


def served(services: Any = None) -> Iterator[int]:
    backend = BackendQueries(overview=lambda: fleet.HEALTHY)
    waiting = WaitingConnections(MOST_WAITING, head_s=0.5, body_s=0.5)
    server = web_process.server(
        backend, most_streams=MOST_STREAMS, waiting=waiting, services=services
    )
    listener = web_process.listen("127.0.0.1", 0)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    wait_until(lambda: server.started, "the server")
    yield int(listener.getsockname()[1])
    server.should_exit = True
    thread.join(10)


def connected(port: int, text: bytes) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=5)
    connection.sendall(text)
    return connection


def _takes(connection: socket.socket, text: bytes) -> bool:
    """Whether the server still accepts bytes."""
    try:
        connection.sendall(text)
    except (ConnectionResetError, BrokenPipeError):
        return False
    return True


def is_cut(connection: socket.socket) -> bool:
    """Whether the server has closed it; waits up to five seconds for that."""
    with suppress(ConnectionResetError):
        while connection.recv(65536):
            pass
    return True


def test_a_half_sent_request_is_cut_however_slowly_it_goes_on(port: int) -> None:
    """Single bytes that complete no request do not prolong its time."""
    with connected(port, HALF) as slow:
        wait_until(lambda: not _takes(slow, b"x"), "the end of a slow request")


def test_a_half_sent_body_is_cut_however_slowly_it_goes_on(body_port: int) -> None:
    """Whoever can reach the server cannot take all its connections with bodies without an end."""
    head = b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5000\r\n\r\n"
    with connected(body_port, head) as slow:
        wait_until(lambda: not _takes(slow, b"x"), "the end of a slow body")


def test_a_long_body_that_goes_on_is_read_to_its_end(body_port: int) -> None:
    """The time of a body begins anew with every LEAST_BODY bytes, also of the next request."""
    pieces = [b"x" * http_connections.LEAST_BODY] * 12

    def slowly() -> Iterator[bytes]:
        for piece in pieces:
            time.sleep(0.1)
            yield piece

    with httpx.Client(base_url=f"http://127.0.0.1:{body_port}") as client:
        assert client.post("/", content=slowly()).text == "120000 bytes"
        assert client.post("/", content=slowly()).text == "120000 bytes"


def test_the_next_request_on_an_open_connection_has_the_same_time(port: int) -> None:
    """A whole request does not buy time for a half one."""
    whole = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with connected(port, whole + HALF) as slow:
        assert slow.recv(65536).startswith(b"HTTP/1.1 200")
        assert is_cut(slow)


def test_a_flood_of_half_sent_requests_cuts_the_oldest_and_serves_others(port: int) -> None:
    """The server holds a fixed number of unfinished requests, and a good one is answered."""
    flood = [connected(port, HALF) for _ in range(3 * MOST_WAITING)]
    assert httpx.get(f"http://127.0.0.1:{port}/healthz").status_code == 200
    assert is_cut(flood[0])
    for connection in flood:
        connection.close()


def test_a_handshake_without_an_end_is_cut(tls_port: tuple[int, Path]) -> None:
    """Silence, half a greeting and plain HTTP hold no connection, and each counts as unfinished."""
    port, certificate = tls_port
    url = f"https://127.0.0.1:{port}/"
    for beginning in (b"", b"\x16\x03\x01\x02", b"GET / HTTP/1.1\r\n\r\n"):
        with connected(port, beginning) as slow:
            assert is_cut(slow)
    flood = [connected(port, b"") for _ in range(3 * MOST_WAITING)]
    trust = ssl.create_default_context(cafile=certificate)
    assert httpx.get(url, verify=trust).text == "hello by https"
    assert is_cut(flood[0])
    for connection in flood:
        connection.close()


def test_a_request_over_tls_may_be_slow_only_after_its_handshake(
    tls_port: tuple[int, Path],
) -> None:
    """The time of the head begins anew with the handshake, and ends as without TLS."""
    port, certificate = tls_port
    trust = ssl.create_default_context(cafile=certificate)
    with (
        connected(port, b"") as plain,
        trust.wrap_socket(plain, server_hostname="127.0.0.1") as tls,
    ):
        tls.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert tls.recv(65536).startswith(b"HTTP/1.1 200")
        tls.sendall(HALF)
        with suppress(ssl.SSLError):
            assert is_cut(tls)


def test_a_body_with_two_lengths_ends_the_connection(port: int) -> None:
    """A proxy that believes the other length would take the rest for a request of its own."""
    head = b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\n"
    body = b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    smuggled = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with connected(port, head + body + smuggled) as client:
        answer = b"".join(iter(lambda: client.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 400")
    assert answer.count(b"HTTP/1.1") == 1


def test_streams_have_a_limit_and_are_counted_back(port: int) -> None:
    """One stream too many gets 503 with Retry-After; a closed stream makes room."""
    url = f"http://127.0.0.1:{port}/api/stream"
    streams = [connected(port, STREAM) for _ in range(MOST_STREAMS)]
    for stream in streams:
        assert stream.recv(65536).startswith(b"HTTP/1.1 200")

    refused = httpx.get(url)
    assert refused.status_code == 503
    assert refused.headers["Retry-After"] == "10"
    assert "POLLER_WEB_STREAMS" in refused.json()["detail"]

    streams[0].close()
    wait_until(lambda: _opens(url), "room for a stream")
    streams[1].close()


def _opens(url: str) -> bool:
    with httpx.stream("GET", url) as response:
        return response.status_code == 200


def test_a_client_that_does_not_read_is_cut(monkeypatch: pytest.MonkeyPatch, port: int) -> None:
    """Responses that fill all buffers do not stay in memory for ever."""
    monkeypatch.setattr(http_connections, "READ_S", 0.5)
    request = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect(("127.0.0.1", port))
        deaf.settimeout(10)
        while _takes(deaf, request):
            pass
