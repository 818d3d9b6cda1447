"""Fixtures that several tests with real servers share."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import redis

from poller import bootstrap
from poller.bootstrap import Services
from poller.cli import main
from poller.collectors.registry import Registry
from poller.db import migrate
from poller.settings import Settings
from poller.state.board.moves import Board
from poller.state.cluster.leader_lock import Leadership
from poller.state.keys import Keys
from tests.acceptance.proxy import Proxy
from tests.integration.commands import Cli, Result
from tests.integration.store_servers import Prometheus, VictoriaMetrics
from tests.integration.store_storms import Drops
from tests.integration.worlds import Fake, World


@pytest.fixture
def services(
    home: Path, valkey_url: str, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Services]:
    """The services of a process with a running server and an upgraded database."""
    monkeypatch.setenv("POLLER_REDIS_URL", valkey_url)
    made = bootstrap.services()
    migrate.upgrade(made.engine)
    yield made
    made.engine.dispose()


@pytest.fixture
def board(redis_client: redis.Redis) -> Board:
    return Board(redis_client, Keys())


@pytest.fixture
def leader(redis_client: redis.Redis) -> Leadership:
    leadership = Leadership(redis_client, Keys(), 60_000)
    leadership.take()
    return leadership


@pytest.fixture
def network(valkey_url: str) -> Iterator[Proxy]:
    """A network between a program and Redis, which can be slow, silent or cut."""
    port = urlsplit(valkey_url).port
    assert port is not None
    proxy = Proxy(port)
    yield proxy
    proxy.close()


@pytest.fixture
def cli(
    home: Path, free_port: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Cli:
    """Run one command line with an empty home and without a Redis; `stdin` is piped text."""
    monkeypatch.setenv("POLLER_REDIS_URL", f"redis://127.0.0.1:{free_port}/0")

    def run(*arguments: str, stdin: str = "") -> Result:
        monkeypatch.setattr("sys.stdin", io.StringIO(stdin))
        bootstrap.services.cache_clear()
        code = main.run(arguments)
        return Result(code, *capsys.readouterr())

    return run


@pytest.fixture
def world(
    home: Path, valkey_url: str, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> Iterator[World]:
    monkeypatch.setenv("POLLER_REDIS_URL", valkey_url)
    monkeypatch.setenv("POLLER_RETRY_TRIES", "0")
    services = Services(Settings())
    migrate.upgrade(services.engine)
    collector = Fake()
    services.registry = Registry({"fake": collector}, (), {"fake": "tests"})  # type: ignore[misc]
    yield World(services, collector)
    services.engine.dispose()


@pytest.fixture
def drops() -> Drops:
    return Drops()


@pytest.fixture(scope="session")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Prometheus that takes samples of the last day in any order."""
    server = Prometheus(tmp_path_factory.mktemp("prometheus"), window="1d")
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def stock_prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Prometheus as it is installed: it takes samples in order only."""
    server = Prometheus(tmp_path_factory.mktemp("stock"))
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def victoria(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VictoriaMetrics]:
    server = VictoriaMetrics(tmp_path_factory.mktemp("victoria"))
    server.start()
    yield server
    server.stop()
