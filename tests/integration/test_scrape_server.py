"""The HTTP server for Prometheus."""

from __future__ import annotations

import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from poller.observability.exposition import metrics_publisher, scrape_server
from poller.observability.exposition.metrics_publisher import MetricsPlace, MetricsPublisher
from poller.observability.exposition.scrape_server import ScrapeAccess, ScrapeServer
from poller.security.allowed_hosts import AllowedHosts

TEXT = b"poller_x 1\n"
Publish = Callable[..., MetricsPublisher]


@contextmanager
def serving(access: ScrapeAccess | None = None) -> Iterator[int]:
    server = ScrapeServer(("127.0.0.1", 0), lambda: TEXT, access or ScrapeAccess())
    server.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def ask(port: int, path: str = "/metrics", **headers: str) -> tuple[int, bytes]:
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def test_it_serves_the_metrics_and_nothing_else() -> None:
    with serving() as port:
        assert ask(port) == (200, TEXT)
        assert ask(port, "/")[0] == 404


def test_a_token_is_required_where_one_is_set() -> None:
    with serving(ScrapeAccess("s3cret")) as port:
        assert ask(port)[0] == 401
        assert ask(port, Authorization="Bearer wrong")[0] == 401
        assert ask(port, Authorization="Bearer s3cret") == (200, TEXT)


def test_a_foreign_web_site_cannot_read_it_through_a_browser() -> None:
    """A name that points to this machine comes with its own Host header."""
    with serving(ScrapeAccess(allows_host=AllowedHosts().allows)) as port:
        assert ask(port, Host="evil.example")[0] == 421
        assert ask(port) == (200, TEXT)


def test_clients_that_never_ask_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are few, and a scrape is answered when their time is over."""
    monkeypatch.setattr(scrape_server, "CONNECTION_S", 0.2)
    with serving() as port:
        address = ("127.0.0.1", port)
        silent = [socket.create_connection(address) for _ in range(scrape_server.MOST_CONNECTIONS)]
        for client in silent:
            client.settimeout(5)
            assert client.recv(1) == b""
            client.close()
        assert ask(port) == (200, TEXT)


@pytest.fixture
def publish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Publish]:
    monkeypatch.setattr(metrics_publisher, "CHECK_S", 0.02)
    monkeypatch.setattr(metrics_publisher, "SNAPSHOT_S", 0.02)
    started: list[MetricsPublisher] = []

    def start(process: str, **place: object) -> MetricsPublisher:
        made = MetricsPublisher(tmp_path / "home", MetricsPlace(**place), "worker", process)  # type: ignore[arg-type]
        made.start()
        started.append(made)
        return made

    yield start
    for each in started:
        each.stop()


def test_a_home_that_cannot_be_written_costs_only_the_others(
    tmp_path: Path, publish: Publish, free_port: int
) -> None:
    """A container with a read-only disk still serves its own numbers."""
    (tmp_path / "home").write_text("no directory")
    publish("w1@host", port=free_port)
    assert b'process="w1@host"' in eventually(lambda: ask_if_up(free_port))


def test_two_processes_share_a_port_and_a_file(
    tmp_path: Path, publish: Publish, free_port: int
) -> None:
    file = tmp_path / "poller.prom"
    for process in ("w1@host", "w2@host"):
        publish(process, port=free_port, file=file)

    def both(read: Callable[[], bytes]) -> bytes:
        text = read()
        return text if b'"w1@host"' in text and b'"w2@host"' in text else b""

    eventually(lambda: both(lambda: ask_if_up(free_port)))
    eventually(lambda: both(lambda: file.read_bytes() if file.exists() else b""))
    left = [path.name for path in tmp_path.iterdir() if path.name.startswith(".")]
    assert len(left) <= 1  # the file that is being written


def ask_if_up(port: int) -> bytes:
    try:
        return ask(port)[1]
    except OSError:
        return b""


def eventually(read: Callable[[], bytes]) -> bytes:
    until = time.monotonic() + 10
    while not (text := read()):
        assert time.monotonic() < until
        time.sleep(0.02)
    return text
