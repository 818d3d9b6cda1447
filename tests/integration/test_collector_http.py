"""The http collector against real servers, correct and hostile ones."""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
import logging
import resource
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
import uvloop

from poller import testing
from poller.collectors.api import Credential
from poller.collectors.credentials import Login, Token
from poller.collectors.http import HttpCollector, http_connection
from poller.domain.failures.outcome import Outcome, Result
from tests.integration.web_servers import Script, identity, saying, serving

OK = "HTTP/1.1 200 OK"
DAY_S = 86_400


@pytest.fixture(params=["asyncio", "uvloop"], autouse=True)
def loop(request: pytest.FixtureRequest) -> Iterator[None]:
    """Workers use uvloop, `poller collect` does not."""
    if request.param == "uvloop":
        asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    yield
    asyncio.set_event_loop_policy(None)


def get(
    port: int,
    credential: Credential | None = None,
    address: str = "127.0.0.1",
    timeout_s: float = 5.0,
    **options: Any,
) -> Outcome:
    where = {} if "url" in options else {"port": port}
    return asyncio.run(
        testing.collect(
            HttpCollector(), address, credential, timeout_s=timeout_s, **where, **options
        )
    )


def ask(script: Script, credential: Credential | None = None, **options: Any) -> Outcome:
    with serving(script) as server:
        return get(server.port, credential, **options)


def values(outcome: Outcome) -> dict[str, float]:
    """Return the readings by name; phases by the name of the phase."""
    assert outcome.readings is not None, outcome
    return {dict(each.labels).get("phase", each.name): each.value for each in outcome.readings}


def test_a_server_that_answers() -> None:
    """Each step is timed, and together they are no longer than the whole."""
    outcome = ask(saying(OK, b"hello"))
    assert outcome.result is Result.OK, outcome
    found = values(outcome)
    assert (
        found["http_up"],
        found["http_status"],
        found["http_body_bytes"],
        found["http_redirects"],
    ) == (1, 200, 5, 0)
    phases = [found[phase] for phase in ("resolve", "connect", "first_byte", "transfer")]
    assert 0 < sum(phases) <= found["http_duration_seconds"] < 2
    assert "tls" not in found


def test_the_request_that_is_sent() -> None:
    """The path with its query, the host as it was given, nothing compressed, no connection kept."""
    with serving(saying(OK)) as server:
        get(server.port, path="/a b?c=ä", host="www.example.org", method="HEAD")
    line, *headers = server.requests[0].decode().split("\r\n")
    assert line == "HEAD /a%20b?c=%C3%A4 HTTP/1.1"
    assert f"Host: www.example.org:{server.port}" in headers
    assert {"Accept-Encoding: identity", "Connection: close"} <= set(headers)
    assert not any(header.startswith("Authorization") for header in headers)


@pytest.mark.parametrize(
    ("status", "expect", "code"),
    [
        *((404, "404", ""), (301, "200-399", "")),
        *((status, "200-399", "rejected") for status in (400, 403, 404, 410, 451)),
        *((status, "200-399", "unwell") for status in (408, 429, 500, 502, 503, 504)),
    ],
)
def test_an_unexpected_status_is_a_finding(status: int, expect: str, code: str) -> None:
    """A failed poll with readings. It is retried if the server may accept the request later."""
    up = not code
    outcome = ask(saying(f"HTTP/1.1 {status} X"), expect=expect)
    assert (values(outcome)["http_up"], values(outcome)["http_status"]) == (up, status)
    assert (outcome.result, outcome.error_code) == (
        (Result.OK, "") if up else (Result.FAILED, code)
    )
    assert outcome.retryable is (code == "unwell")
    assert up or f"answered with status {status} (expected is {expect})" in outcome.message


@pytest.mark.parametrize(("pattern", "up"), [("status: (ok|fine)", 1), ("^status: bad", 0)])
def test_the_body_must_match(pattern: str, up: int) -> None:
    outcome = ask(saying(OK, b"<p>status: fine</p>"), match=pattern)
    assert (values(outcome)["http_up"], values(outcome)["http_body_matched"]) == (up, up)
    assert outcome.result is (Result.OK if up else Result.FAILED)


def test_json_values() -> None:
    """A missing value is a failed part; the other values are read."""
    body = b'{"nodes": [{"load": "0.5", "up": true}]}'
    outcome = ask(
        saying(OK, body),
        values={"load": "nodes[0].load", "up": "nodes[0].up", "free": "memory.free"},
    )
    assert (outcome.result, outcome.error_code) == (Result.PARTIAL, "unsupported")
    assert "free: memory.free is not in the answer" in outcome.message
    assert (values(outcome)["load"], values(outcome)["up"], values(outcome)["http_up"]) == (
        0.5,
        1,
        1,
    )


@pytest.mark.parametrize(
    "body", [b"<html>", b"[" * 100_000, b"\xff\xfe\x00", b'{"a": ' + b"9" * 5000 + b"}", b""]
)
def test_a_body_that_is_no_json(body: bytes) -> None:
    outcome = ask(saying(OK, body), values={"a": "a"})
    assert (outcome.result, outcome.error_code) == (Result.PARTIAL, "protocol_error")
    assert "the body is no JSON" in outcome.message


def test_a_certificate_is_checked_and_its_expiry_is_a_reading(tmp_path: Path) -> None:
    made = identity(tmp_path, days=30)
    with serving(saying(OK), made.context) as server:
        outcome = get(server.port, scheme="https", ca_file=str(made.ca_file))
    assert outcome.result is Result.OK, outcome
    found = values(outcome)
    assert found["http_tls_trusted"] == 1
    assert found["http_tls_expiry_seconds"] == pytest.approx(30 * DAY_S, abs=60)
    assert 0 < found["tls"] < 2
    info = next(each.labels for each in outcome.readings or () if each.name == "http_tls_info")
    assert (info["subject"], info["protocol"]) == ("127.0.0.1 (test)", "TLSv1.3")


@pytest.mark.parametrize(
    ("days", "why"), [(30, "self-signed certificate"), (-3, "certificate has expired")]
)
def test_an_untrusted_certificate_is_reported_with_its_expiry(
    tmp_path: Path, days: int, why: str
) -> None:
    """The server receives no request."""
    made = identity(tmp_path, days=days)
    ca_file = {"ca_file": str(made.ca_file)} if days < 0 else {}
    with serving(saying(OK), made.context) as server:
        outcome = get(
            server.port, Token.from_text("secret-token"), scheme="https", auth="bearer", **ca_file
        )
        assert server.requests == []
    assert (outcome.result, outcome.error_code) == (Result.FAILED, "unwell")
    assert why in outcome.message.replace("self signed", "self-signed")
    found = values(outcome)
    assert (found["http_up"], found["http_tls_trusted"]) == (0, 0)
    assert found["http_tls_expiry_seconds"] == pytest.approx(days * DAY_S, abs=60)


def test_any_certificate_will_do_if_the_operator_says_so(tmp_path: Path) -> None:
    with serving(saying(OK), identity(tmp_path, days=-3).context) as server:
        outcome = get(server.port, scheme="https", insecure=True)
    assert outcome.result is Result.OK
    assert (values(outcome)["http_up"], values(outcome)["http_tls_trusted"]) == (1, 0)
    assert values(outcome)["http_tls_expiry_seconds"] < 0


@pytest.mark.parametrize("pinned", [True, False])
def test_a_pinned_certificate_and_no_other(tmp_path: Path, pinned: bool) -> None:
    """Neither CA nor age counts; a server with another certificate receives no request."""
    made = identity(tmp_path, days=-3)
    found = hashlib.sha256(ssl.PEM_cert_to_DER_cert(made.ca_file.read_text())).hexdigest()
    with serving(saying(OK), made.context) as server:
        outcome = get(server.port, scheme="https", fingerprint=found if pinned else "00" * 32)
        assert len(server.requests) == pinned
        assert server.connections == 1
    assert (values(outcome)["http_up"], values(outcome)["http_tls_trusted"]) == (pinned, pinned)
    assert values(outcome)["http_tls_expiry_seconds"] == pytest.approx(-3 * DAY_S, abs=60)
    assert pinned or f"it is not the pinned one: its SHA-256 is {found}" in outcome.message


@pytest.mark.parametrize(("host", "result"), [("www.example.org", Result.OK), ("", Result.FAILED)])
def test_the_requested_name_is_the_one_that_is_checked(
    tmp_path: Path, host: str, result: Result
) -> None:
    made = identity(tmp_path, name="www.example.org")
    with serving(saying(OK), made.context) as server:
        given = {"host": host} if host else {}
        assert get(server.port, scheme="https", ca_file=str(made.ca_file), **given).result is result


@pytest.mark.parametrize(
    ("credential", "options", "header"),
    [
        (
            Login.from_text("admin:hunter22"),
            {"auth": "basic"},
            b"Basic " + base64.b64encode(b"admin:hunter22"),
        ),
        (Token.from_text("hunter22"), {"auth": "bearer"}, b"Authorization: Bearer hunter22"),
        (Token.from_text("hunter22"), {"auth": "header", "header": "X-Key"}, b"X-Key: hunter22"),
        (Login.from_text("admin:hunter22"), {}, b"Host: "),
    ],
)  # fmt: skip
def test_logging_in(credential: Credential, options: dict[str, Any], header: bytes) -> None:
    """Only `auth` sends a credential, so that a device's password stays off its web page."""
    with serving(saying(OK)) as server:
        assert get(server.port, credential, **options).result is Result.OK
    assert header in server.requests[0]
    assert (b"hunter22" in server.requests[0] or b"Basic" in server.requests[0]) is bool(options)


@pytest.mark.parametrize(
    ("script", "auth", "code"),
    [
        (saying("HTTP/1.1 401 Unauthorized"), "bearer", "auth_failed"),
        (saying("HTTP/1.1 500 hunter22-secret"), "bearer", "unwell"),
        (lambda head, c: c.sendall(head), "header", "unwell"),
        (saying("HTTP/1.1 302 X\r\nLocation: http://hunter22-secret\x00/"), "bearer", "unwell"),
    ],
)  # fmt: skip
def test_a_secret_is_in_no_message_and_no_log(
    script: Script, auth: str, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A secret stays out of messages and logs, even when the server sends it back."""
    caplog.set_level(logging.DEBUG)
    outcome = ask(script, Token.from_text("hunter22-secret"), auth=auth, redirects=1)
    assert outcome.result is Result.FAILED
    assert outcome.error_code == code
    assert "hunter22" not in repr(outcome) + caplog.text


@pytest.mark.parametrize(
    ("credential", "auth", "why"),
    [
        (None, "basic", "auth=basic needs a credential of kind login"),
        (Token.from_text("abcdefg"), "basic", "auth=basic needs a credential of kind login"),
        (
            Token.from_text("abc\ndefg"),
            "bearer",
            "the token has characters that no header can carry",
        ),
        (
            Login.from_fields({"username": "a:b", "password": "abcdefg"}),
            "basic",
            "a user name with a colon",
        ),
    ],
)
def test_a_credential_that_cannot_be_sent_sends_nothing(
    credential: Credential | None, auth: str, why: str
) -> None:
    with serving(saying(OK)) as server:
        outcome = get(server.port, credential, auth=auth)
        assert server.connections == 0
    assert (outcome.result, outcome.error_code) == (Result.FAILED, "auth_failed")
    assert why in outcome.message
    assert "abc" not in outcome.message


def redirecting(to: str, status: int = 302) -> Script:
    return saying(f"HTTP/1.1 {status} X\r\nLocation: {to}")


def test_redirections_are_followed_as_far_as_allowed() -> None:
    def script(head: bytes, connection: socket.socket) -> None:
        number = int(head.split()[1][1:] or b"0")
        (redirecting(f"/{number + 1}") if number < 3 else saying(OK, b"end"))(head, connection)

    there = ask(script, redirects=3)
    assert (there.result, values(there)["http_redirects"], values(there)["http_body_bytes"]) == (
        Result.OK,
        3,
        3,
    )
    short = ask(script, redirects=2, expect="200")
    assert (short.result, values(short)["http_status"]) == (Result.FAILED, 302)
    none = ask(script)
    assert (none.result, values(none)["http_status"], values(none)["http_redirects"]) == (
        Result.OK,
        302,
        0,
    )


def test_a_loop_of_redirections_ends() -> None:
    with serving(redirecting("/")) as server:
        outcome = get(server.port, redirects=10)
        assert len(server.requests) == 11
    assert (outcome.result, outcome.error_code) == (Result.FAILED, "unwell")


@pytest.mark.parametrize("to", ["ftp://a/", "http://a b/", "x" * 9000, "http://u:p@a/", "//\x01"])
def test_a_redirection_to_nowhere(to: str) -> None:
    outcome = ask(redirecting(to), redirects=1)
    assert (outcome.result, outcome.error_code) == (Result.FAILED, "unwell")


def test_a_secret_is_sent_to_its_origin_only() -> None:
    """After a redirection to another server the request carries no secret."""
    with (
        serving(saying(OK)) as other,
        serving(redirecting(f"http://127.0.0.1:{other.port}/")) as first,
    ):
        outcome = get(first.port, Token.from_text("secret-token"), auth="bearer", redirects=1)
    assert outcome.result is Result.OK
    assert b"secret-token" in first.requests[0]
    assert b"secret-token" not in other.requests[0]


def drip(piece: bytes, first: bytes = b"", pause_s: float = 0.0) -> Script:
    """Send a response that never ends."""

    def script(_: bytes, connection: socket.socket) -> None:
        with suppress(OSError):
            connection.sendall(first)
            while True:
                connection.sendall(piece)
                time.sleep(pause_s)

    return script


CHUNKED = f"{OK}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
PLAIN = f"{OK}\r\n\r\n".encode()
HOSTILE: dict[str, Script] = {
    "endless body": drip(b"x" * 65536, PLAIN),
    "endless chunks": drip(b"10000\r\n" + b"x" * 65536 + b"\r\n", CHUNKED),
    "tiny chunks": drip(b"1\r\nx\r\n" * 1000, CHUNKED),
    "endless chunk size": drip(b"0" * 1000, CHUNKED),
    "endless header": drip(b"x" * 65536, b"HTTP/1.1 200 OK\r\nX: "),
    "endless headers": drip(b"X: y\r\n" * 1000, b"HTTP/1.1 200 OK\r\n"),
    "endless trailers": drip(b"X: y\r\n" * 1000, CHUNKED + b"0\r\n"),
    "endless informational answers": drip(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000),
    "endless empty lines": drip(b"\r\n" * 1000),
    "slow header": drip(b"X", b"HTTP/1.1 200 OK\r\n", 0.02),
    "slow body": drip(b"x", PLAIN, 0.02),
    "silence": drip(b"", b"", 0.02),
    "silence after the head": drip(b"", PLAIN, 0.02),
    "a bomb": lambda _, c: c.sendall(
        f"{OK}\r\nContent-Encoding: gzip\r\n\r\n".encode() + gzip.compress(bytes(50_000_000))
    ),
    "huge length": lambda _, c: c.sendall(f"{OK}\r\nContent-Length: {'9' * 40}\r\n\r\nx".encode()),
    "cut off": lambda _, c: c.sendall(f"{OK}\r\nContent-Length: 10\r\n\r\nx".encode()),
    "two lengths": lambda _, c: c.sendall(
        f"{OK}\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx".encode()
    ),
    "garbage": lambda _, c: c.sendall(b"\x16\x03\x01\x00\xff" * 50),
    "binary headers": lambda _, c: c.sendall(b"HTTP/1.1 200 OK\r\n\xff\xfe: \x00\r\n\r\n"),
    "no status": lambda _, c: c.sendall(b"HTTP/1.1 OK\r\n\r\n"),
    "status 999": lambda _, c: c.sendall(b"HTTP/1.1 999 X\r\nContent-Length: 0\r\n\r\n"),
    "hangs up": lambda _, c: c.close(),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_server_holds_us_up_or_fills_our_memory(name: str) -> None:
    """The poll ends in time with an outcome, and the body is limited."""
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.monotonic()
    outcome = ask(HOSTILE[name], timeout_s=0.4, values={"a": "a"}, max_body=100_000)
    took_s = time.monotonic() - began
    assert outcome.result in (Result.FAILED, Result.PARTIAL), outcome
    assert outcome.error_code in {"down", "unwell", "protocol_error"}, outcome
    assert took_s < 1.0
    assert values(outcome).get("http_body_bytes", 0) <= 100_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb < 120_000


def test_a_server_that_does_not_answer_is_down() -> None:
    """A refusal ends the poll at once, silence ends it at the deadline; `http_up` is 0."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, but not listening
        refused = get(taken.getsockname()[1])
    silent = ask(HOSTILE["silence"], timeout_s=0.3)
    for outcome in (refused, silent):
        assert (outcome.result, outcome.error_code) == (Result.FAILED, "down")
        assert values(outcome)["http_up"] == 0
        assert "http_status" not in values(outcome)
    assert "failed at connecting (Connection refused)" in refused.message
    assert (
        "gave no complete answer in time (the time of the poll was up at waiting for its answer)"
        in silent.message
    )


def test_a_server_without_tls_is_unwell_for_https() -> None:
    with serving(lambda _, c: c.sendall(PLAIN), listens=False) as server:
        outcome = get(server.port, scheme="https")
    assert (outcome.result, outcome.error_code) == (Result.FAILED, "unwell")
    assert "the TLS handshake" in outcome.message


def test_no_connection_is_left_open() -> None:
    """No connection stays open, whatever the server did."""
    import os

    before = len(os.listdir("/proc/self/fd"))
    for script in (saying(OK), HOSTILE["cut off"], HOSTILE["hangs up"]):
        ask(script)
    ask(HOSTILE["slow body"], timeout_s=0.3)
    deadline = time.monotonic() + 5
    while len(os.listdir("/proc/self/fd")) > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(os.listdir("/proc/self/fd")) <= before


def test_a_silent_address_does_not_block_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The queue of the first address is full, so that it drops packets."""
    monkeypatch.setattr(http_connection, "_CONNECT_S", 0.1)

    async def made(full: socket.socket, port: int) -> int:
        addresses = [(socket.AF_INET, full.getsockname()), (socket.AF_INET, ("127.0.0.1", port))]
        with await http_connection._connect(addresses) as connected:
            return int(connected.getpeername()[1])

    with ExitStack() as open_now, serving(saying(OK)) as server:
        full = open_now.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):
            one = open_now.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex(full.getsockname())
        assert asyncio.run(asyncio.wait_for(made(full, server.port), 10)) == server.port
