"""The database refuses, falls silent or is locked while the cluster polls: what is on the board is polled on."""

from __future__ import annotations

import sqlite3
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import sqlalchemy as sa

from poller.db import devices
from poller.db import engine as sql
from poller.domain.draft import DeviceDraft
from tests.acceptance.cluster import Cluster, soon, target
from tests.acceptance.proxy import Proxy

pytestmark = pytest.mark.timeout(120)

TARGETS, INTERVAL_S = 100, 1.0


@dataclass(frozen=True)
class OnPostgres:
    """A beat and a worker on PostgreSQL, each by way of a network of its own; tests and commands go directly."""

    cluster: Cluster
    beat: Proxy
    worker: Proxy

    def heal(self) -> None:
        self.beat.heal()
        self.worker.heal()
        self.cluster.all_polled(time.time(), 20)


@pytest.fixture(scope="module")
def database_url(postgres_url: str) -> Iterator[str]:
    """A database of this module's own."""
    name = f"t_{uuid.uuid4().hex}"
    server = sa.create_engine(sql.create(postgres_url).url, isolation_level="AUTOCOMMIT")
    with server.connect() as conn:
        conn.execute(sa.text(f"CREATE DATABASE {name}"))
    yield urlsplit(postgres_url)._replace(path=f"/{name}").geturl()
    with server.connect() as conn:
        conn.execute(sa.text(f"DROP DATABASE {name} WITH (FORCE)"))
    server.dispose()


@pytest.fixture(scope="module")
def on_postgres(database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OnPostgres]:
    """Polling, with the backup check of the inventory every second, so that the beat asks often."""
    parts = urlsplit(database_url)
    assert parts.port is not None
    networks = Proxy(parts.port), Proxy(parts.port)
    ways = [parts._replace(netloc=f"postgres@127.0.0.1:{network.port}").geturl() for network in networks]
    with Cluster(tmp_path_factory.mktemp("postgres"), database_url) as cluster:
        cluster.valkey.start()
        cluster.add_targets(TARGETS, INTERVAL_S)
        cluster.start_beat(POLLER_DATABASE_URL=ways[0], POLLER_RECONCILE_S="1")
        cluster.start_worker(POLLER_DATABASE_URL=ways[1])
        cluster.all_polled(0, 30)
        yield OnPostgres(cluster, *networks)
    for network in networks:
        network.close()


def go_on(cluster: Cluster, seconds: float) -> None:
    """Every target is polled, again and again for so long."""
    until = time.time() + seconds
    while time.time() < until:
        cluster.all_polled(time.time(), INTERVAL_S + 1.5)


def test_a_database_that_refuses_stops_no_polling(on_postgres: OnPostgres) -> None:
    """And what was edited meanwhile takes effect when it is back."""
    cluster = on_postgres.cluster
    on_postgres.beat.refuse()
    on_postgres.worker.refuse()
    go_on(cluster, 3)
    devices.add(cluster.services.engine, DeviceDraft("new", "127.0.0.1"), [target(1.0)])
    on_postgres.heal()  # waits until the new one is polled, too
    cluster.sound()


@pytest.mark.xfail(strict=True, reason="a batch waits for its rows before it finishes, however long SQL takes")
def test_a_database_that_is_silent_stops_no_worker(on_postgres: OnPostgres) -> None:
    """Results that cannot be written may be lost; polls may not."""
    on_postgres.worker.silence()
    try:
        go_on(on_postgres.cluster, 4)
    finally:
        on_postgres.heal()


def test_a_database_that_is_silent_stops_no_beat(on_postgres: OnPostgres) -> None:
    """It cannot learn of edits, and goes on with what is on the board."""
    on_postgres.beat.silence()
    try:
        go_on(on_postgres.cluster, 4)
    finally:
        on_postgres.heal()


@pytest.mark.xfail(strict=True, reason="a batch waits up to 10 s for SQLite's write lock, twice, before it finishes")
def test_a_locked_file_stops_no_polling(tmp_path: Path) -> None:
    """Somebody holds SQLite's write lock for some seconds, as a backup or a large import does."""
    with Cluster(tmp_path) as cluster:
        cluster.valkey.start()
        cluster.add_targets(TARGETS, INTERVAL_S)
        cluster.start_beat()
        cluster.start_worker()
        cluster.all_polled(0, 30)
        lock = sqlite3.connect(tmp_path / "home" / "poller.db", isolation_level=None)
        lock.execute("BEGIN IMMEDIATE")
        go_on(cluster, 3)
        lock.execute("ROLLBACK")
        soon(lambda: cluster.all_polled(time.time(), 3) is None, 5, "all is well again")
        cluster.never_doubled(0)
