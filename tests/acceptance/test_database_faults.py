"""The database refuses, falls silent, is locked or stopped while the cluster polls.

Polling goes on, and no result is lost or doubled: results wait on the worker's disk.
"""

from __future__ import annotations

import os
import sqlite3
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import sqlalchemy as sa

from poller.db import engine as sql
from poller.db.inventory import devices
from poller.db.tables import readings, runs
from poller.domain.inventory.draft import DeviceDraft
from poller.state.cluster import worker_registry
from tests.acceptance.cluster import Cluster, Program, soon, target
from tests.acceptance.postgres import Postgres
from tests.acceptance.proxy import Proxy

pytestmark = [pytest.mark.alone, pytest.mark.timeout(240)]

TARGETS, INTERVAL_S = 100, 1.0
SHORT_LEASES = {"POLLER_LEASE_MARGIN_S": "2", "POLLER_SPOOL_PATIENCE_S": "0.2"}
#: The time that PostgreSQL is stopped; `OUTAGE_S=60 pytest ...` runs the longer test.
OUTAGE_S = float(os.environ.get("OUTAGE_S", "6"))


@dataclass(frozen=True)
class OnPostgres:
    """A beat and a worker on PostgreSQL, each with its own network; tests and commands connect
    directly.
    """

    cluster: Cluster
    beat: Proxy
    worker: Proxy
    starting: Proxy  # for a worker that a test starts
    starting_url: str

    def heal(self) -> None:
        self.beat.heal()
        self.worker.heal()
        self.cluster.all_polled(time.time(), 20)


@pytest.fixture(scope="module")
def database_url(postgres_url: str) -> Iterator[str]:
    """A database for this module only."""
    name = f"t_{uuid.uuid4().hex}"
    server = sa.create_engine(sql.create(postgres_url).url, isolation_level="AUTOCOMMIT")
    with server.connect() as conn:
        conn.execute(sa.text(f"CREATE DATABASE {name}"))
    yield urlsplit(postgres_url)._replace(path=f"/{name}").geturl()
    with server.connect() as conn:
        conn.execute(sa.text(f"DROP DATABASE {name} WITH (FORCE)"))
    server.dispose()


@pytest.fixture(scope="module")
def on_postgres(
    database_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OnPostgres]:
    """A cluster that polls and checks the inventory every second, so that the beat queries
    often.
    """
    parts = urlsplit(database_url)
    assert parts.port is not None
    networks = Proxy(parts.port), Proxy(parts.port), Proxy(parts.port)
    urls = [
        parts._replace(netloc=f"postgres@127.0.0.1:{network.port}").geturl() for network in networks
    ]
    with Cluster(tmp_path_factory.mktemp("postgres"), database_url) as cluster:
        cluster.valkey.start()
        cluster.add_targets(TARGETS, INTERVAL_S)
        cluster.start_beat(POLLER_DATABASE_URL=urls[0], POLLER_RECONCILE_S="1")
        # Few slots: workers with one or two slots are to have a share of so few targets, too.
        cluster.start_worker("-c", "4", POLLER_DATABASE_URL=urls[1])
        cluster.all_polled(0, 30)
        yield OnPostgres(cluster, *networks, urls[2])
    for network in networks:
        network.close()


@pytest.fixture
def postgres() -> Iterator[Postgres]:
    made = Postgres()
    try:
        made.start()
        yield made
    finally:
        made.remove()


def polling(cluster: Cluster, workers: int) -> None:
    """Start a cluster and wait until every target is polled and every worker has its copy of the
    inventory: without a database none can be read.
    """
    cluster.valkey.start()
    cluster.add_targets(TARGETS, INTERVAL_S)
    cluster.start_beat()
    for _ in range(workers):
        cluster.start_worker()

    soon(all_targets_polled(cluster, 0), 60, "every target is polled")
    for worker in cluster.workers:
        soon(lambda w=worker: "inventory_copied" in w.text(), 20, "the inventory is copied")


def check_polling_without_a_database(cluster: Cluster, seconds: float) -> None:
    """Check for `seconds` that every target is polled, without a query of the database."""
    until = time.time() + seconds
    while time.time() < until:
        soon(all_targets_polled(cluster, time.time()), INTERVAL_S + 1.5, "every target is polled")


def all_targets_polled(cluster: Cluster, since: float) -> Callable[[], bool]:
    return lambda: len({poll.target for poll in cluster.record.polls(since)}) == TARGETS


def spooled(cluster: Cluster) -> int:
    """Return the number of spool files that wait. Workers remove directories at the same time."""
    found = [names for _, _, names in os.walk(cluster.directory / "home" / "spool")]
    return sum(name.endswith(".rounds") for names in found for name in names)


def rows_match(cluster: Cluster) -> None:
    """Check that there are exactly as many rows and readings as polls."""
    for beat in cluster.beats:
        beat.terminate()
        beat.wait(10)
    soon(lambda: all(poll.end for poll in cluster.record.polls()), 10, "the last polls end")

    def differences() -> list[str]:
        """Name the targets whose polls, runs and readings are not equally many."""
        polled = Counter(poll.target for poll in cluster.record.polls())
        found = []
        for table in (runs, readings):
            query = sa.select(table.c.target_id, sa.func.count()).group_by(table.c.target_id)
            with cluster.services.engine.connect() as conn:
                rows = dict(conn.execute(query).all())
            for number, count in polled.items():
                if rows.get(number, 0) != count:
                    found.append(f"{table.name} of {number}: {rows.get(number, 0)} of {count}")
        return found

    try:
        soon(lambda: not differences(), 10, "a row for each poll")
    except AssertionError:
        assert differences() == []


def check_polling(cluster: Cluster, seconds: float) -> None:
    """Check for `seconds` that every target is polled, again and again."""
    until = time.time() + seconds
    while time.time() < until:
        cluster.all_polled(time.time(), INTERVAL_S + 1.5)


def test_a_database_that_refuses_stops_no_polling(on_postgres: OnPostgres) -> None:
    """Polling goes on during the refusal, and a device added meanwhile is polled when the database
    is back.
    """
    cluster = on_postgres.cluster
    on_postgres.beat.refuse()
    on_postgres.worker.refuse()
    began = time.time()
    check_polling(cluster, 3)
    devices.add(cluster.services.engine, DeviceDraft("new", "127.0.0.1"), [target(1.0)])
    on_postgres.heal()  # waits until the new one is polled, too
    cluster.sound()
    cluster.never_doubled(began)


def test_a_database_that_is_silent_stops_no_worker(on_postgres: OnPostgres) -> None:
    """Polls go on, and their results are written when the database responds again."""
    began = time.time()
    on_postgres.worker.silence()
    try:
        check_polling(on_postgres.cluster, 4)
    finally:
        on_postgres.heal()
    on_postgres.cluster.never_doubled(began)


def test_a_database_that_is_silent_stops_no_beat(on_postgres: OnPostgres) -> None:
    """The beat reads no edits, and goes on with the targets of the board."""
    on_postgres.beat.silence()
    try:
        check_polling(on_postgres.cluster, 4)
    finally:
        on_postgres.heal()


def test_workers_that_start_without_a_database_wait_and_come_up_whole(
    on_postgres: OnPostgres,
) -> None:
    """With each pool a worker says what it waits for; afterwards its heartbeat counts its polls,
    also those of prefork children, and SIGTERM stops it in order.
    """
    cluster = on_postgres.cluster
    on_postgres.starting.refuse()
    env = {"POLLER_DATABASE_URL": on_postgres.starting_url}
    workers = [
        cluster.start_worker("-P", pool, "-c", "2", **env)
        for pool in ("threads", "prefork", "solo")
    ]
    try:
        for worker in workers:
            soon(lambda w=worker: "database_awaited" in w.text(), 60, "it says that it waits")
        on_postgres.starting.heal()
        for worker in workers:
            soon(lambda w=worker: polls_of(cluster, w), 60, f"{worker.name} counts its polls")
        for worker in workers:
            worker.terminate()
        for worker in workers:
            assert worker.wait(20) == 0
            assert "Signal handler" not in worker.text()
            assert not polls_of(cluster, worker), "it left the registry"
    finally:
        for worker in workers:
            worker.kill()
            cluster.workers.remove(worker)


def polls_of(cluster: Cluster, worker: Program) -> int:
    """Return the polls in the heartbeat of a worker; 0 for one that is not registered."""
    workers = worker_registry.registered(cluster.services.redis, cluster.services.keys)
    return sum(entry.polls for entry in workers if entry.name == worker.name)


def test_a_locked_file_stops_no_polling(tmp_path: Path) -> None:
    """Another process holds SQLite's write lock for some seconds, as a backup or a large import
    does. The first poll waits for the lock twice, with readings and with rows: with a patience of 1
    s that is 2.5 s.
    """
    with Cluster(tmp_path, POLLER_SPOOL_PATIENCE_S="0.25") as cluster:
        cluster.valkey.start()
        cluster.add_targets(TARGETS, INTERVAL_S)
        cluster.start_beat()
        cluster.start_worker()
        cluster.all_polled(0, 30)
        lock = sqlite3.connect(tmp_path / "home" / "poller.db", isolation_level=None)
        lock.execute("BEGIN IMMEDIATE")
        check_polling(cluster, 3)
        lock.execute("ROLLBACK")
        soon(
            lambda: cluster.all_polled(time.time(), 3) is None, 5, "every target is polled on time"
        )
        cluster.never_doubled(0)


def test_a_database_that_was_stopped_has_every_result_afterwards(
    tmp_path: Path, postgres: Postgres
) -> None:
    """After a crash of the database under load no result is lost or doubled, and polling does not
    pause.
    """
    with Cluster(tmp_path, postgres.url) as cluster:
        polling(cluster, workers=2)
        began = time.time()
        postgres.kill()
        check_polling_without_a_database(cluster, OUTAGE_S)
        assert spooled(cluster) > 0
        postgres.start()
        cluster.all_polled(time.time(), 20)
        soon(lambda: spooled(cluster) == 0, 30, "everything that waited is written")
        cluster.never_doubled(began)
        rows_match(cluster)
        cluster.sound()


def test_a_worker_killed_during_an_outage_loses_no_finished_poll(
    tmp_path: Path, postgres: Postgres
) -> None:
    """After kill -9 the other worker polls the targets of the dead one, which it never read from
    SQL, and the next worker on the host takes over the spool files.
    """
    with Cluster(tmp_path, postgres.url, **SHORT_LEASES) as cluster:
        polling(cluster, workers=2)
        began = time.time()
        postgres.stop()
        check_polling_without_a_database(cluster, 3)
        worker = cluster.workers[0]
        worker.kill()
        killed = time.time()
        cluster.workers.remove(worker)
        soon(all_targets_polled(cluster, killed + 1), 12, "the other worker polls every target")
        check_polling_without_a_database(cluster, 3)
        postgres.start()
        cluster.start_worker()
        cluster.all_polled(time.time(), 40)
        soon(lambda: spooled(cluster) == 0, 60, "everything that waited is written")
        # Polls that ended just before the kill were not finished on the board, and run again.
        cluster.never_doubled(
            began, lambda poll: poll.end is not None and killed - 1.5 < poll.end < killed
        )
        cluster.sound()


def test_a_worker_that_stops_during_an_outage_leaves_its_results_to_the_next(
    tmp_path: Path, postgres: Postgres
) -> None:
    """A worker stops as quickly during an outage as at any time, and no result is lost."""
    with Cluster(tmp_path, postgres.url) as cluster:
        polling(cluster, workers=1)
        began = time.time()
        postgres.stop()
        check_polling_without_a_database(cluster, 3)
        [worker] = cluster.workers
        worker.terminate()
        worker.wait(10)
        cluster.workers.remove(worker)
        postgres.start()
        cluster.start_worker()
        cluster.all_polled(time.time(), 30)
        soon(lambda: spooled(cluster) == 0, 30, "everything that waited is written")
        cluster.never_doubled(began)
        cluster.sound()
