"""The web process: the real command, real stores and real signals."""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from poller import errors
from poller.db import engine, migrate
from poller.web import web_process

READY_WITHIN_S = 20


class Web:
    """`poller web` on a free port."""

    def __init__(self, home: Path, redis_url: str, port: int, **more: str) -> None:
        scheme = "https" if "POLLER_WEB_TLS_CERT" in more else "http"
        self.url = f"{scheme}://127.0.0.1:{port}"
        environment = {
            "POLLER_HOME": str(home),
            "POLLER_REDIS_URL": redis_url,
            "POLLER_WEB_PORT": str(port),
            "POLLER_FLOWER_URL": "http://127.0.0.1:5555",
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
            **more,
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "poller", "web"],
            env=environment,
            stderr=subprocess.PIPE,
            cwd=home,
        )

    def wait(self, client: httpx.Client | None = None) -> None:
        get = client.get if client else httpx.get
        deadline = time.monotonic() + READY_WITHIN_S
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                get(f"{self.url}/healthz")
                return
            except httpx.TransportError:
                time.sleep(0.05)
        pytest.fail("the web process did not answer")

    def stop(self) -> float:
        started = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=10)
        return time.monotonic() - started


def free_port() -> int:
    with web_process.listen("127.0.0.1", 0) as probe:
        return int(probe.getsockname()[1])


def make_tables(home: Path) -> None:
    database = engine.create(f"sqlite:///{home / 'poller.db'}")
    migrate.upgrade(database)
    database.dispose()


@pytest.fixture
def web(tmp_path: Path, valkey_url: str) -> Iterator[Web]:
    make_tables(tmp_path)
    made = Web(tmp_path, valkey_url, free_port())
    made.wait()
    yield made
    made.stop()


def test_the_process_serves_the_real_stores(web: Web) -> None:
    """The process is ready when SQL and Redis answer; an empty board is a first run."""
    assert httpx.get(f"{web.url}/readyz").json() == {
        "status": "ready",
        "sql": "ok",
        "redis": "ok",
        "leader": "absent",
        "level": "ok",
        "verdict": "Nothing to poll yet. Three ways to begin:",
    }
    page = httpx.get(web.url).text
    assert "Nothing to poll yet." in page
    assert '<a href="http://127.0.0.1:5555">Flower</a>' in page
    assert httpx.get(f"{web.url}/api/overview").json()["targets"]["total"] == 0
    assert "poller_up 1.0" in httpx.get(f"{web.url}/metrics").text


def test_a_database_without_tables_is_no_first_run(tmp_path: Path, valkey_url: str) -> None:
    """The page names the missing tables and the command that makes them; so does `/readyz`."""
    sqlite3.connect(tmp_path / "poller.db").execute("VACUUM")
    web = Web(tmp_path, valkey_url, free_port())
    web.wait()
    try:
        ready = httpx.get(f"{web.url}/readyz")
        page = httpx.get(web.url).text
    finally:
        web.stop()
    assert ready.status_code == 503
    assert "no tables yet" in ready.json()["sql"]
    assert "The database has no tables yet; run: poller db upgrade." in page
    assert "Nothing to poll yet" not in page


def test_the_stream_is_not_buffered(web: Web) -> None:
    """The first frame arrives at once, uncompressed; the next about a second later."""
    with httpx.stream(
        "GET", f"{web.url}/api/stream", headers={"Accept-Encoding": "gzip"}
    ) as answer:
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        assert "Content-Encoding" not in answer.headers
        assert answer.headers["X-Accel-Buffering"] == "no"
        assert "Content-Security-Policy" in answer.headers
        lines = answer.iter_lines()
        arrivals = []
        while len(arrivals) < 3:
            line = next(lines)
            if line.startswith("data: "):
                arrivals.append((time.monotonic(), json.loads(line[6:])))
    (first, whole), (second, patch), (third, _) = arrivals
    assert whole["texts"]["health"] == "Nothing to poll yet. Three ways to begin:"
    assert set(patch["texts"]) == {"as-of"}
    assert third - first > 1.5, "more than one frame a second"
    assert second - first < 3


def test_an_open_stream_does_not_delay_a_stop(web: Web) -> None:
    """SIGTERM ends the process within 1.5 seconds while a page is open."""
    with httpx.stream("GET", f"{web.url}/api/stream") as answer:
        next(answer.iter_lines())
        assert web.stop() < 1.5


def test_the_process_serves_without_redis(tmp_path: Path) -> None:
    """The process is alive but not ready, and the error has no password."""
    make_tables(tmp_path)
    web = Web(tmp_path, f"redis://user:hunter2@127.0.0.1:{free_port()}/0", free_port())
    web.wait()
    try:
        ready = httpx.get(f"{web.url}/readyz", timeout=20)
        page = httpx.get(web.url, timeout=20)
    finally:
        web.stop()
    assert ready.status_code == 503
    assert (ready.json()["sql"], ready.json()["leader"]) == ("ok", "unknown")
    assert "cannot use Redis" in ready.json()["redis"]
    assert "Cannot read the board: cannot use Redis" in page.text
    assert "hunter2" not in ready.text + page.text


def test_a_configured_port_is_not_replaced() -> None:
    """A port in use is an error that names the setting."""
    with web_process.listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(errors.PortInUse, match=rf"web_port: 127\.0\.0\.1:{port} is in use"):
            web_process.listen("127.0.0.1", port)


def test_the_default_port_is_replaced_by_a_free_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another program on port 8080 does not stop a first run."""
    with web_process.listen("127.0.0.1", 0) as taken:
        monkeypatch.setattr(web_process, "DEFAULT_PORT", taken.getsockname()[1])
        with web_process.listen("127.0.0.1", None) as other:
            assert isinstance(other, socket.socket)
            assert other.getsockname()[1] != taken.getsockname()[1]


def test_a_foreign_bind_address_is_refused() -> None:
    """The error names the setting and the reason."""
    with pytest.raises(errors.InvalidSetting, match=r"web_bind: cannot listen on 192\.0\.2\.1:0"):
        web_process.listen("192.0.2.1", 0)


def test_the_page_is_not_opened_to_a_network_by_mistake(tmp_path: Path) -> None:
    """An address beyond loopback needs a user, a token or another login."""
    environment = {"POLLER_HOME": str(tmp_path), "POLLER_WEB_BIND": "0.0.0.0"}
    done = subprocess.run(
        [sys.executable, "-m", "poller", "web"],
        env=environment,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=20,
    )
    assert done.returncode == 2
    assert (
        "web_bind: 0.0.0.0 can be reached from outside, and there is no user and no token"
        in done.stderr
    )
    assert "poller user add NAME --role admin" in done.stderr


def test_an_invalid_setting_is_one_line(tmp_path: Path) -> None:
    """The error has no traceback, and the exit code is 2."""
    environment = {"POLLER_HOME": str(tmp_path), "POLLER_WEB_PORT": "80800"}
    done = subprocess.run(
        [sys.executable, "-m", "poller", "web"],
        env=environment,
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error[P210]: web_port")
    assert "Traceback" not in done.stderr
