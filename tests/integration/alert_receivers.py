"""Servers that take notices: an Alertmanager, a mail server, and a web server with moods."""

from __future__ import annotations

import json
import socket
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import policy
from email.message import EmailMessage
from email.parser import BytesParser
from pathlib import Path
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult

from poller.alerts.receivers import registry
from poller.alerts.receivers.registry import MadeReceiver
from poller.domain.alerts.telling import notice
from poller.domain.alerts.telling.notice import Notice, NoticeKind
from tests.integration import web_servers
from tests.integration.store_servers import HttpStoreServer, free_port
from tests.integration.web_servers import serving
from tests.unit.domain.alerts.telling.told_alerts import alert, ended

NOW = round(time.time() * 1000)
KEY = "a" * 40


class Alertmanager(HttpStoreServer):
    """Prometheus' Alertmanager, which tells nobody."""

    program = "prometheus-alertmanager"

    def command(self) -> list[str]:
        config = self.directory / "alertmanager.yml"
        config.write_text("route:\n  receiver: nobody\nreceivers:\n  - name: nobody\n")
        return [
            f"--config.file={config}",
            f"--storage.path={self.directory / 'data'}",
            f"--web.listen-address=127.0.0.1:{self.port}",
            "--cluster.listen-address=",
        ]

    def is_ready(self) -> bool:
        return b"OK" in self.ask("/-/ready")

    def alerts(self) -> dict[str, dict[str, Any]]:
        """The active alerts, by their devices."""
        found = json.loads(self.ask("/api/v2/alerts", active="true"))
        return {each["labels"].get("device", ""): each for each in found}


@dataclass
class Mood:
    """A web server that takes notices, or fails, hangs or refuses as it is told."""

    status: int = 200
    hangs: bool = False
    answer: str = "noted"
    bodies: list[dict[str, Any]] = field(default_factory=list)
    heads: list[dict[str, str]] = field(default_factory=list)
    raw: list[bytes] = field(default_factory=list)
    free: threading.Event = field(default_factory=threading.Event)

    def __call__(self, head: bytes, connection: socket.socket) -> None:
        body = web_servers.body_of(head, connection)
        if self.hangs:
            self.free.wait(30)
        self.raw.append(body)
        self.heads.append(_fields(head))
        self.bodies.append(json.loads(body))
        phrase = "OK" if self.status < 400 else "No"
        said = self.answer.encode()
        answer = f"HTTP/1.1 {self.status} {phrase}\r\nContent-Length: {len(said)}\r\n\r\n"
        connection.sendall(answer.encode() + said)

    @property
    def taken(self) -> list[dict[str, Any]]:
        """The first notice of each key, as a receiver that drops repeats has them."""
        found: dict[str, dict[str, Any]] = {}
        for body in self.bodies:
            found.setdefault(body["key"], body)
        return list(found.values())


def _fields(head: bytes) -> dict[str, str]:
    lines = head.partition(b"\r\n\r\n")[0].decode().split("\r\n")[1:]
    pairs = (line.partition(": ") for line in lines)
    return {name.lower(): value for name, _, value in pairs}


@contextmanager
def web(mood: Mood | None = None) -> Iterator[tuple[str, Mood]]:
    """A web server with a mood: its URL, and the mood."""
    mood = mood or Mood()
    with serving(mood) as server:
        yield f"http://127.0.0.1:{server.port}/hook", mood
        mood.free.set()


class Mailbox:
    """What a mail server took. `refusal` is its answer to a recipient instead."""

    def __init__(self) -> None:
        self.messages: list[EmailMessage] = []
        self.refusals: dict[str, str] = {}
        self.answer = "250 kept"
        self.logins: list[bytes] = []

    async def handle_RCPT(
        self, server: Any, session: Any, envelope: Any, address: str, options: Any
    ) -> str:
        if address in self.refusals:
            return self.refusals[address]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        parsed = BytesParser(policy=policy.default).parsebytes(envelope.content)
        assert isinstance(parsed, EmailMessage)
        if self.answer.startswith("250"):
            self.messages.append(parsed)
        return self.answer

    def authenticate(
        self, server: Any, session: Any, envelope: Any, mechanism: str, data: Any
    ) -> AuthResult:
        self.logins.append(data.password)
        return AuthResult(success=data.password == b"s3cret-of-mail", handled=False)


@contextmanager
def mail_server(**options: Any) -> Iterator[tuple[int, Mailbox]]:
    """A mail server on loopback: its port, and what it took."""
    box = Mailbox()
    port = free_port()
    if "tls_context" in options:
        options = {"authenticator": box.authenticate, "auth_required": True, **options}
    controller = Controller(box, hostname="127.0.0.1", port=port, **options)
    controller.start()
    try:
        yield port, box
    finally:
        controller.stop()


def receiver(kind: str, web_url: str = "https://poller.example", **options: Any) -> MadeReceiver:
    """A receiver named ops."""
    return registry.make("ops", {"ops": {"kind": kind, **options}}, web_url)


def firing(*numbers: int, **changes: Any) -> Notice:
    """A notice of alerts that fire now."""
    alerts = [alert(number, fired_ms=NOW, since_ms=NOW, **changes) for number in numbers or (1,)]
    return _notice(alerts, NoticeKind.FIRING)


def resolved(*numbers: int, **changes: Any) -> Notice:
    """A notice that the same alerts are over."""
    alerts = [
        ended(number, fired_ms=NOW, since_ms=NOW, resolved_ms=NOW + 1000, **changes)
        for number in numbers or (1,)
    ]
    return _notice(alerts, NoticeKind.RESOLVED)


def _notice(alerts: Any, kind: NoticeKind) -> Notice:
    told = tuple(notice.told_alert(each, web_url="https://poller.example") for each in alerts)
    return Notice(key=KEY, kind=kind, route="ops", alerts=told, created_ms=NOW)


def secret_file(directory: Path, text: str, name: str = "secret") -> str:
    """The path of a new file with a secret."""
    path = directory / name
    path.write_text(text)
    return str(path)


def eventually(ready: Callable[[], Any], within_s: float = 15.0) -> Any:
    """What `ready` returns as soon as it is true."""
    until = time.monotonic() + within_s
    while True:
        found = ready()
        if found:
            return found
        assert time.monotonic() < until, "it did not come to pass"
        time.sleep(0.02)


def get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.loads(answer.read())
