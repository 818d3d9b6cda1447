"""A secret of every kind is planted in a running installation, and found in no place it shows."""

from __future__ import annotations

import base64
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
import sqlalchemy as sa

from poller.db import engine as sql
from tests.acceptance import leaker
from tests.acceptance.programs import Up, descendants, eventually
from tests.acceptance.valkey import Valkey, free_port
from tests.ingest import KEY, Ingest
from tests.integration import web_servers
from tests.trace_receiver import TraceReceiver

pytestmark = pytest.mark.timeout(180)
Start = Callable[..., Up]
ROOT = Path(__file__).parents[2]
API = "/api/v1"
VAULT_KEY = base64.b64encode(b"planted-key-of-the-vault-32-byte").decode()
SECRETS = {
    "community": "planted-community",
    "auth key": "planted-auth-key",
    "priv key": "planted-priv-key",
    "router": "planted-router",
    "basic": "planted-basic",
    "bearer": "planted-bearer",
    "plugin": "planted-plugin",
    "url": "planted-in-url",
    "user": "planted password of a user",
    "oidc": "planted-oidc-secret",
    "database": "planted-database",
    "redis": "planted-redis",
    "metrics": "planted-metrics-token",
    "flower": "planted-flower",
    "sentry": KEY,
    "vault": VAULT_KEY,
}
CREDENTIALS = {
    "community": {"community": SECRETS["community"]},
    "snmpv3": {
        "username": "u",
        "auth_password": SECRETS["auth key"],
        "priv_password": SECRETS["priv key"],
    },
    "router": {"username": "u", "password": SECRETS["router"]},
    "basic": {"username": "u", "password": SECRETS["basic"]},
    "bearer": {"token": SECRETS["bearer"]},
    "plugin": {"username": "u", "password": SECRETS["plugin"]},
}
KINDS = {"router": "login", "basic": "login", "plugin": "login", "bearer": "token"}
FAILURES = {
    ("community", "unreachable"),
    ("snmpv3", "unreachable"),
    ("router", "unreachable"),
    ("basic", "auth_failed"),
    ("bearer", "auth_failed"),
    ("plugin", "collector_crashed"),
    ("url", "rejected"),
}
PAGES = (
    "/",
    "/jobs",
    "/collectors",
    "/devices/community",
    "/devices/community/config",
    "/devices/url",
    "/devices/url/config",
    "/metrics",
    "/api/overview",
    "/login",
)
FLOWER_PAGES = ("/", "/workers", "/tasks", "/broker", "/api/workers", "/api/tasks")


#: Enough of a stream that goes on for ever.
MOST_TEXT = 300_000


class Installation:
    """A running `poller up` with a secret in every setting, and what it said so far."""

    def __init__(self, up: Up, web: str, flower: str) -> None:
        self.up = up
        self.web = web
        self.flower = flower
        self.found: dict[str, str] = {}  # texts by place
        self.secrets = dict(SECRETS)
        self._client = httpx.Client(base_url=web)

    def token(self, *scopes: str) -> dict[str, str]:
        words = [word for scope in scopes for word in ("--scope", scope)]
        name = "-".join(scopes)
        done = self.up.run("token", "add", name, *words, "--json")
        assert done.returncode == 0, done.stderr
        value = str(json.loads(done.stdout)["token"])
        self.secrets[f"token {name}"] = value
        return {"Authorization": f"Bearer {value}"}

    def look(self, who: str, path: str, headers: Mapping[str, str]) -> None:
        place = f"GET {path} as {who}"
        wait_s = 0.5 if path.endswith("stream") else 20  # a stream has no end
        with (
            suppress(httpx.ReadTimeout),
            self._client.stream("GET", path, headers=headers, timeout=wait_s) as response,
        ):
            self.found[place] = str(response.headers)
            for piece in response.iter_text():
                self.found[place] += piece
                if len(self.found[place]) > MOST_TEXT:
                    break


def forms(secret: str) -> set[str]:
    """A secret as it is, in an address, and inside base64 at any position."""
    found = {secret, quote(secret, safe="")}
    for offset in range(3):
        coded = base64.b64encode(b"\0" * offset + secret.encode()).decode()
        found.add(coded[4 if offset else 0 : len(coded) // 4 * 4 - 4])
    return found


@pytest.fixture
def valkey(tmp_path: Path) -> Iterator[Valkey]:
    server = Valkey(tmp_path / "valkey")
    server.start()
    server.client.config_set("requirepass", SECRETS["redis"])
    yield server
    server.kill()


@pytest.fixture
def echo() -> Iterator[int]:
    """The port of a web server that refuses a request and repeats all of it."""

    def refuse(head: bytes, connection: socket.socket) -> None:
        web_servers.saying("HTTP/1.1 401 planted", head)(head, connection)

    with web_servers.serving(refuse) as server:
        yield server.port


def commands(valkey: Valkey, seen: list[bytes]) -> None:
    """Note every command that Redis gets, and so every message and value."""
    connection = socket.create_connection(("127.0.0.1", valkey.port))
    connection.sendall(f"AUTH {SECRETS['redis']}\r\nMONITOR\r\n".encode())

    def watch() -> None:
        with suppress(OSError), connection:
            while piece := connection.recv(1 << 20):
                seen.append(piece)

    threading.Thread(target=watch, daemon=True).start()


def plant(installation: Installation, admin: dict[str, str], echo: int, database: str) -> None:
    """Add credentials and targets by the API; none of the targets responds as it should."""
    dead = free_port()
    targets: dict[str, tuple[str, dict[str, Any]]] = {
        "community": ("snmp", {"port": dead}),
        "snmpv3": ("snmp", {"port": dead}),
        "router": ("routeros", {"port": dead}),
        "basic": ("http", {"port": echo, "auth": "basic"}),
        "bearer": ("http", {"port": echo, "auth": "bearer"}),
        "plugin": (leaker.NAME, {}),
    }
    with httpx.Client(base_url=installation.web, headers=admin, timeout=20) as api:
        for name, (collector, options) in targets.items():
            credential = {"name": name, "kind": KINDS.get(name, name), "fields": CREDENTIALS[name]}
            made = api.post(f"{API}/credentials", json=credential)
            assert made.status_code == 201, made.text
            target = {"collector": collector, "options": options, "interval": "1s"}
            device = {"name": name, "address": "127.0.0.1", "credential": name}
            made = api.post(f"{API}/devices", json={**device, "targets": [target]})
            assert made.status_code == 201, made.text
        target = {"collector": "http", "options": {"port": echo}, "interval": "1s"}
        device = {"name": "url", "address": "127.0.0.1", "targets": [target]}
        assert api.post(f"{API}/devices", json=device).status_code == 201
    engine = sql.create(database)  # a token in a URL is refused since; this one is older
    options = json.dumps({"port": echo, "path": f"/?token={SECRETS['url']}"})
    with engine.begin() as conn:
        change = "UPDATE targets SET options = :options WHERE device_id = "
        only = "(SELECT id FROM devices WHERE name = 'url')"
        conn.execute(sa.text(change + only), {"options": options})
    engine.dispose()


def paths(document: Mapping[str, Any]) -> list[str]:
    """Every address that can be read, for the device `plugin`."""
    values = {"name": "plugin", "target": "leaker", "target_id": "6", "code": "P301"}
    found = []
    for path, operations in document["paths"].items():
        if "get" in operations:
            for name, value in values.items():
                path = path.replace(f"{{{name}}}", value)
            found.append(path.replace("{", "").replace("}", ""))
    return found


def stored(database: str) -> Iterator[tuple[str, str]]:
    """Every row of every table."""
    engine = sql.create(database)
    tables = sa.MetaData()
    tables.reflect(engine)
    with engine.connect() as conn:
        for table in tables.sorted_tables:
            rows = conn.execute(sa.select(table)).all()
            yield f"table {table.name}", "\n".join(str(tuple(row)) for row in rows)
    engine.dispose()


def test_a_planted_secret_is_in_no_place(
    tmp_path: Path, up: Start, valkey: Valkey, fresh_postgres_url: str, echo: int
) -> None:
    """Responses for each right, pages, metrics, logs, events, audit, Redis, Celery, Flower, Sentry
    and traces.
    """
    leaker.install(tmp_path / "plugins")
    database = fresh_postgres_url.replace("postgres@", f"postgres:{SECRETS['database']}@", 1)
    seen: list[bytes] = []
    commands(valkey, seen)
    web, flower = free_port(), free_port()
    with Ingest() as sentry, TraceReceiver().running() as traces:
        running = up(
            "--workers",
            "1",
            POLLER_REDIS_URL=f"redis://:{SECRETS['redis']}@127.0.0.1:{valkey.port}/0",
            POLLER_DATABASE_URL=database,
            POLLER_SECRET_KEY=VAULT_KEY,
            POLLER_METRICS_TOKEN=SECRETS["metrics"],
            POLLER_OIDC_ISSUER=f"http://127.0.0.1:{free_port()}",
            POLLER_OIDC_CLIENT_ID="poller",
            POLLER_OIDC_CLIENT_SECRET=SECRETS["oidc"],
            POLLER_FLOWER_BASIC_AUTH=f"ops:{SECRETS['flower']}",
            POLLER_SENTRY_DSN=sentry.dsn,
            POLLER_TRACE_ENDPOINT=traces.url,
            POLLER_TRACE_RATIO="1",
            POLLER_WEB_PORT=str(web),
            POLLER_FLOWER_PORT=str(flower),
            POLLER_LOG_LEVEL="DEBUG",
            POLLER_RETRY_TRIES="0",
            PYTHONPATH=os.pathsep.join([str(tmp_path / "plugins"), str(ROOT)]),
            NO_PROXY="127.0.0.1",
        )
        site = Installation(running, f"http://127.0.0.1:{web}", f"http://127.0.0.1:{flower}")
        eventually(lambda: _responds(f"{site.web}/readyz"), 60, "the page")
        admin = site.token("admin")
        plant(site, admin, echo, database)
        _work(site, admin, sentry, traces)
        _look_everywhere(site, admin)
        site.found["Sentry"] = b"\n".join(sentry.bodies).decode()
        site.found["traces"] = "\n".join(span.text for span in traces.spans)
        site.found["command lines"] = "\n".join(descendants(running.process.pid).values())
        running.stop(within_s=30)
    site.found["commands of Redis and messages of Celery"] = b"".join(seen).decode("latin-1")
    site.found["output"] = running.text()
    for file in (path for path in running.home.rglob("*") if path.is_file()):
        site.found[f"file {file.name}"] = file.read_bytes().decode("latin-1")
    site.found |= dict(stored(database))
    for place in ("commands of Redis and messages of Celery", "Sentry", "traces", "output"):
        assert len(site.found[place]) > 1000, place
    assert any("logging in with ********" in text for text in site.found.values())
    assert _leaks(site) == []


def _responds(url: str) -> bool:
    with suppress(httpx.HTTPError):
        return httpx.get(url, timeout=5).is_success
    return False


def _work(site: Installation, admin: dict[str, str], sentry: Ingest, traces: Any) -> None:
    """Let polls fail and crash, and people fail to log in and succeed."""
    form = {"name": "lee", "password": SECRETS["user"]}
    site_header = {"Sec-Fetch-Site": "same-origin"}
    made = httpx.post(
        f"{site.web}{API}/users", json={**form, "role": "viewer"}, headers=admin, timeout=20
    )
    assert made.status_code == 201, made.text
    wrong = {"name": SECRETS["user"], "password": "wrong"}
    httpx.post(f"{site.web}/login", data=wrong, headers=site_header, timeout=20)
    done = httpx.post(f"{site.web}/login", data=form, headers=site_header, timeout=20)
    site.secrets["session"] = done.cookies["poller_session"]
    sentry.wait_for(lambda event: event["fingerprint"][:2] == ["collector", leaker.NAME], 60)

    def failures() -> set[tuple[str, str]]:
        runs = httpx.get(f"{site.web}{API}/runs?limit=200", headers=admin, timeout=20).json()
        return {(run["device"], run["error_code"]) for run in runs["items"]}

    eventually(lambda: failures() >= FAILURES, 60, f"runs with {FAILURES}")
    eventually(lambda: traces.named("poll target"), 30, "a trace")


def _look_everywhere(site: Installation, admin: dict[str, str]) -> None:
    document = httpx.get(f"{site.web}{API}/openapi.json", headers=admin, timeout=20).json()
    callers = {
        "admin": admin,
        "reader": site.token("read"),
        "editor": site.token("inventory", "operate"),
        "viewer": {"Cookie": f"poller_session={site.secrets['session']}"},
    }
    for who, headers in callers.items():
        for path in (*paths(document), *PAGES):
            site.look(who, path, headers)
    assert len(site.found) > 100
    for path in FLOWER_PAGES:
        shown = httpx.get(f"{site.flower}{path}", auth=("ops", SECRETS["flower"]), timeout=20)
        assert shown.status_code == 200, path
        site.found[f"Flower {path}"] = shown.text


def _is_allowed(kind: str, place: str) -> bool:
    """The token of a URL stays where its target is stored, and in exports that can be imported."""
    is_export = place.startswith(f"GET {API}/export") and not place.endswith(("reader", "viewer"))
    return kind == "url" and (place == "table targets" or is_export)


def _leaks(site: Installation) -> list[tuple[str, str, str]]:
    found = []
    for kind, secret in site.secrets.items():
        for form in forms(secret):
            for place, text in site.found.items():
                if form in text and not _is_allowed(kind, place):
                    at = text.index(form)
                    found.append((kind, place, text[max(0, at - 80) : at + len(form) + 40]))
    return found
