"""A scrape that repeats byte by byte is answered from memory, with the rights of this moment."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from poller.bootstrap import Services
from poller.db.access import token_rows
from poller.db.access.token_rows import NewToken
from poller.db.inventory import devices
from poller.domain.access.actor import Actor, ActorKind
from poller.domain.access.scopes import Scope
from poller.domain.inventory.draft import DeviceDraft
from poller.security import token_values
from poller.web import web_process
from poller.web.exporter.exporter_routes import Exporter
from tests.integration import exporters
from tests.integration.scrape_worlds import ScrapeWorld

NOBODY = Actor("tests", ActorKind.SYSTEM, "")


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with exporters.snmpd(tmp_path_factory.mktemp("machine")) as port:
        yield port


@pytest.fixture
def world(
    services: Services, monkeypatch: pytest.MonkeyPatch, machine: int
) -> Iterator[ScrapeWorld]:
    """A device that was polled."""
    made = ScrapeWorld(services, monkeypatch)
    made.announce_worker()
    made.add_credential("lab", "public")
    made.poll(made.add_device("sw1", machine, "lab", options={"modules": ["system"]}))
    yield made
    made.close()


class Page:
    """A running web server, and how many scrapes went the usual way."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.usual = 0

    def ask(
        self, connection: socket.socket, extra: str = "", path: str = "/snmp?target=sw1"
    ) -> str:
        head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n{extra}\r\n"
        connection.sendall(head.encode())
        return read_response(connection)


def read_response(connection: socket.socket) -> str:
    text = b""
    while b"\r\n\r\n" not in text:
        text += connection.recv(65536)
    head, _, body = text.partition(b"\r\n\r\n")
    [length] = [
        int(line.split(b":")[1])
        for line in head.split(b"\r\n")
        if line.lower().startswith(b"content-length:")
    ]
    while len(body) < length:
        body += connection.recv(65536)
    assert len(body) == length
    return (head + b"\r\n\r\n" + body).decode()


@contextmanager
def serving(world: ScrapeWorld, monkeypatch: pytest.MonkeyPatch) -> Iterator[Page]:
    listener = web_process.listen("127.0.0.1", 0)
    page = Page(listener.getsockname()[1])
    usual = Exporter.snmp

    async def counted(self: Exporter, *arguments: object) -> object:
        page.usual += 1
        return await usual(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Exporter, "snmp", counted)
    backend = web_process.backend_queries(world.services)
    server = web_process.server(backend, services=world.services)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield page
    finally:
        server.should_exit = True
        thread.join(10)


def test_a_repeated_scrape_takes_the_quick_way(
    world: ScrapeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same samples and security headers come, and other requests of the connection as ever."""
    with serving(world, monkeypatch) as page, _connected(page) as connection:
        first = page.ask(connection)
        second = page.ask(connection)
        third = page.ask(connection)
        assert page.usual == 1
        assert [_samples(text) for text in (second, third)] == [_samples(first)] * 2
        for header in ("content-security-policy", "x-frame-options", "cache-control: no-store"):
            assert header in second.lower()
        other = page.ask(connection, path="/-/healthy")
        assert other.endswith("Healthy")
        assert _samples(page.ask(connection)) == _samples(first)
        assert page.usual == 1


def test_a_head_with_a_body_never_takes_the_quick_way(
    world: ScrapeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What follows such a head would be taken for the next request."""
    with serving(world, monkeypatch) as page, _connected(page) as connection:
        for _ in range(3):
            page.ask(connection, extra="Content-Length: 0\r\n")
        assert page.usual == 3


def test_an_edit_ends_the_quick_answers(
    world: ScrapeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A device that is disabled answers no longer, within some seconds."""
    with serving(world, monkeypatch) as page, _connected(page) as connection:
        assert page.ask(connection).startswith("HTTP/1.1 200")
        devices.edit(world.services.engine, "sw1", DeviceDraft("sw1", enabled=False))
        until = time.monotonic() + 10
        while (text := page.ask(connection)).startswith("HTTP/1.1 200"):
            assert time.monotonic() < until
            time.sleep(0.1)
        assert "sw1/snmp is disabled" in text


def test_a_removed_token_ends_the_quick_answers(
    world: ScrapeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The token is looked up at every scrape, in rows of the last three seconds."""
    value = token_values.new()
    engine = world.services.engine
    new = NewToken("prometheus", token_values.digest(value), (Scope.SCRAPE,))
    token_rows.add(engine, new, NOBODY)
    bearer = f"Authorization: Bearer {value}\r\n"
    with serving(world, monkeypatch) as page, _connected(page) as connection:
        for _ in range(3):
            assert page.ask(connection, bearer).startswith("HTTP/1.1 200")
        assert page.usual == 1
        token_rows.remove(engine, "prometheus", NOBODY)
        until = time.monotonic() + 10
        while (text := page.ask(connection, bearer)).startswith("HTTP/1.1 200"):
            assert time.monotonic() < until
            time.sleep(0.1)
        assert text.startswith("HTTP/1.1 401")


@contextmanager
def _connected(page: Page) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", page.port), timeout=20) as connection:
        yield connection


def _samples(text: str) -> list[str]:
    body = text.partition("\r\n\r\n")[2]
    return [line for line in body.splitlines() if not line.startswith(("#", "poller_scrape_age"))]
