"""The HTTP client of sinks against servers that send exactly the bytes of a test."""

from __future__ import annotations

import gzip
import socket
import ssl
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from poller import errors
from poller.sinks.http_options import HttpStoreOptions
from poller.sinks.http_store import HttpStore
from poller.sinks.store_connection import ANSWER_BYTES
from tests.integration import web_servers
from tests.integration.web_servers import saying, serving

OK = "HTTP/1.1 204 No Content"


def store(port: int, scheme: str = "http", **options: Any) -> HttpStore:
    url = f"{scheme}://127.0.0.1:{port}"
    return HttpStore(HttpStoreOptions(url=url, **options), "prom")


class KeptServer:
    """A server that answers several requests of one connection."""

    def __init__(self, answers: int) -> None:
        self.bodies: list[bytes] = []
        self._answers = answers

    def __call__(self, head: bytes, connection: socket.socket) -> None:
        received = head
        for _ in range(self._answers):
            while b"\r\n\r\n" not in received:
                received += connection.recv(65536)
            self.bodies.append(web_servers.body_of(received, connection))
            received = b""
            connection.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")


def test_a_connection_is_kept_and_renewed() -> None:
    """Requests share a connection; one that the store closed is replaced without an error."""
    script = KeptServer(answers=2)
    with serving(script) as server:
        client = store(server.port)
        for number in range(3):
            assert client.post("/write", b"%d" % number).status == 204
        client.close()
    assert script.bodies == [b"0", b"1", b"2"]
    assert server.connections == 2


def test_a_body_can_be_zipped() -> None:
    """A zipped body says so in its header."""
    script = KeptServer(answers=1)
    with serving(script) as server:
        store(server.port).post("/write", b"line\n" * 100, zipped=True)
    assert gzip.decompress(script.bodies[0]) == b"line\n" * 100
    assert b"Content-Encoding: gzip" in server.requests[0]


def test_a_silent_store_is_given_up_in_time() -> None:
    """The deadline holds for the whole answer, also for one that comes byte by byte."""

    def drip(_: bytes, connection: socket.socket) -> None:
        for byte in b"HTTP/1.1 204 No Content\r\nX-Slow: " + b"x" * 1000:
            connection.sendall(bytes([byte]))
            time.sleep(0.05)

    with serving(drip) as server:
        started = time.monotonic()
        with pytest.raises(errors.StoreUnavailable, match=r"within 0\.3 s"):
            store(server.port, timeout_s=0.3).post("/write", b"x")
    assert time.monotonic() - started < 2


def test_half_an_answer_is_no_answer() -> None:
    """A store that dies while it answers may not have stored anything."""

    def script(_: bytes, connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")

    with serving(script) as server, pytest.raises(errors.StoreUnavailable, match="prom"):
        store(server.port).post("/write", b"x")


def test_a_store_that_hangs_up_is_said_to_do_so() -> None:
    """The error is in words of people, not in those of the protocol's library."""

    def hang_up(_: bytes, connection: socket.socket) -> None:
        connection.shutdown(socket.SHUT_RDWR)

    with serving(hang_up) as server, pytest.raises(errors.StoreUnavailable) as raised:
        store(server.port).post("/write", b"x")
    assert raised.value.cause == "the store closed the connection without an answer"


def test_an_answer_that_repeats_the_login_is_masked(tmp_path: Path) -> None:
    """Answers of stores and receivers are shown to people and kept in the ledger."""

    def repeat(head: bytes, connection: socket.socket) -> None:
        said = head.partition(b"\r\n\r\n")[0].replace(b"\r\n", b" ")
        answer = b"HTTP/1.1 500 No\r\nContent-Length: %d\r\n\r\n" % len(said)
        connection.sendall(answer + said)

    password, token = tmp_path / "password", tmp_path / "token"
    password.write_text("s3cret-password\n")
    token.write_text("s3cret-token\n")
    login = {"username": "me", "password_file": password}
    with serving(repeat) as server:
        for given in (login, {"bearer_token_file": token}, {"header_files": {"X-Key": token}}):
            answer = store(server.port, **given).post("/write", b"x")
            assert "s3cret" not in answer.text
            assert "bWU6czNjcmV0" not in answer.text  # me:s3cret in base64
            assert "********" in str(store(server.port, **given).failure(answer))


def test_a_closed_port_is_named(free_port: int) -> None:
    """The error of a store that does not run names the sink and its address."""
    with pytest.raises(errors.StoreUnavailable, match=rf"prom .*:{free_port}.* refused"):
        store(free_port).post("/write", b"x")


def test_a_store_that_answers_before_it_has_read_all_is_heard() -> None:
    """The status of a store that refuses a large body early is not lost to a broken pipe."""

    def refuse(_: bytes, connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(65536):
            pass

    with serving(refuse) as server:
        answer = store(server.port).post("/write", b"x" * 4_000_000)
    assert answer.status == 413


@pytest.mark.parametrize("pause_s", [0.0, 0.05], ids=["at once", "later"])
def test_an_answer_that_nobody_asked_for_is_not_taken_for_the_next(pause_s: float) -> None:
    """A second answer would say of every later request that it is stored."""
    answers = iter([b"HTTP/1.1 204 Ok", b"HTTP/1.1 503 Away"])
    is_sent = threading.Event()

    def doubled(_: bytes, connection: socket.socket) -> None:
        answer = next(answers) + b"\r\nContent-Length: 0\r\n\r\n"
        connection.sendall(answer)
        time.sleep(pause_s)
        connection.sendall(answer)
        is_sent.set()
        connection.recv(1)

    with serving(doubled) as server:
        client = store(server.port)
        assert client.post("/write", b"1").status == 204
        assert is_sent.wait(5)
        assert client.post("/write", b"2").status == 503
        client.close()


def test_a_long_answer_is_cut() -> None:
    """An answer without end costs no memory, and its connection is not used again."""

    def flood(_: bytes, connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 500 Bad\r\nContent-Length: 1000000000\r\n\r\n")
        while True:
            connection.sendall(b"x" * 65536)

    with serving(flood) as server:
        answer = store(server.port).post("/write", b"x")
    assert len(answer.body) == ANSWER_BYTES


@pytest.mark.parametrize(
    ("head", "is_away", "hint"),
    [
        ("HTTP/1.1 503 Away\r\nRetry-After: 7", True, ""),
        ("HTTP/1.1 429 Slow down", True, ""),
        ("HTTP/1.1 401 No", True, "password_file"),
        ("HTTP/1.1 404 Where", True, "url of the sink"),
        ("HTTP/1.1 302 There\r\nLocation: http://192.0.2.1/", True, "redirect"),
        ("HTTP/1.1 400 Bad", False, ""),
        ("HTTP/1.1 413 Large", False, ""),
    ],
)
def test_a_status_is_an_outage_or_a_refusal(head: str, is_away: bool, hint: str) -> None:
    """Only a status that says that the body itself is bad counts as a refusal."""
    with serving(saying(head, b"because\nof this")) as server:
        client = store(server.port)
        error = client.failure(client.post("/write", b"x"))
    assert isinstance(error, errors.StoreUnavailable) == is_away
    assert error.cause == "because of this"
    assert hint in error.hint
    if isinstance(error, errors.StoreUnavailable):
        assert error.retry_after_s == (7.0 if "503" in head else None)


def test_a_store_without_tls_is_told_from_one_that_is_away() -> None:
    """The hint names the scheme of the url."""
    with (
        socket.create_server(("127.0.0.1", 0)) as plain,
        ThreadPoolExecutor(1) as answering,
    ):
        answering.submit(_answer_in_clear, plain)
        with pytest.raises(errors.StoreUnavailable) as raised:
            store(plain.getsockname()[1], "https").post("/write", b"x")
    assert "http:// in the url" in raised.value.hint


def _answer_in_clear(server: socket.socket) -> None:
    connection, _ = server.accept()
    with connection:
        connection.recv(4096)
        connection.sendall(b"HTTP/1.0 400 Bad Request\r\n\r\n")


def test_tls_is_verified_with_the_given_ca_and_shows_the_client_certificate(tmp_path: Path) -> None:
    """A store whose CA is unknown gets nothing; one that wants a client certificate gets it."""
    identity = web_servers.identity(tmp_path)
    identity.context.verify_mode = ssl.CERT_REQUIRED
    identity.context.load_verify_locations(identity.ca_file)
    certificate = {"cert_file": identity.ca_file, "key_file": identity.ca_file.with_suffix(".key")}

    with serving(saying(OK), identity.context) as server:
        with pytest.raises(errors.StoreUnavailable, match="certificate") as raised:
            store(server.port, "https", **certificate).post("/write", b"x")
        assert "ca_file" in raised.value.hint
        assert server.requests == []

        client = store(server.port, "https", ca_file=identity.ca_file, **certificate)
        assert client.post("/write", b"x").status == 204
        insecure = store(server.port, "https", insecure=True, **certificate)
        assert insecure.post("/write", b"x").status == 204
