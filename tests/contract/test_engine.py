"""Transactions on both backends: a reader sees one instant, and writers wait for each other without
deadlock.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller import errors
from poller.db import engine as sql
from poller.db import migrate
from poller.db.inventory import inventory_feed
from poller.db.tables import inventory as table
from poller.domain.jobs.job_run import FailureCode, Plan
from poller.workers.jobs.handler_call import HandlerCall
from poller.workers.jobs.run_context import RunContext
from tests.conftest import wait_until


@pytest.fixture
def postgres(fresh_postgres_url: str) -> Iterator[Engine]:
    made = sql.create(fresh_postgres_url)
    migrate.upgrade(made)
    yield made
    made.dispose()


def bump(engine: Engine) -> None:
    with sql.writing(engine) as conn:
        number = conn.execute(sa.select(table.c.version).with_for_update()).scalar_one()
        conn.execute(sa.update(table).values(version=number + 1))


def test_read_then_write_from_many_threads_loses_nothing(engine: Engine) -> None:
    """Sixteen threads read and then write in one transaction; a lock upgrade would fail some of
    them.
    """
    failures: list[Exception] = []

    def work() -> None:
        try:
            for _ in range(10):
                bump(engine)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert inventory_feed.version(engine) == 160


def test_a_thread_that_waits_too_long_for_a_write_gets_an_error(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Waiting for a thread is bounded as waiting for another process is, and later writes
    succeed.
    """
    engine = sql.create(sqlite_url)
    migrate.upgrade(engine)
    monkeypatch.setattr(sql, "BUSY_TIMEOUT_S", 0.05)
    refused: list[errors.StoreUnavailable] = []

    def work() -> None:
        try:
            bump(engine)
        except errors.StoreUnavailable as error:
            refused.append(error)

    with sql.writing(engine):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join(10)
    assert "another thread" in str(refused[0])
    bump(engine)
    assert inventory_feed.version(engine) == 1
    engine.dispose()


def test_a_reader_sees_one_instant(engine: Engine) -> None:
    """A commit between two statements of a reader does not show."""
    with sql.reading(engine) as conn:
        before = inventory_feed.version_in(conn)
        bump(engine)
        assert inventory_feed.version_in(conn) == before
    assert inventory_feed.version(engine) == before + 1


def test_an_exception_rolls_back(engine: Engine) -> None:
    """An exception rolls the transaction back, and passes unchanged when it is not the
    database's.
    """

    def interrupted() -> None:
        with sql.writing(engine) as conn:
            conn.execute(sa.update(table).values(version=99))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        interrupted()
    assert inventory_feed.version(engine) == 0


def test_a_reader_cannot_write_on_postgresql(postgres: Engine) -> None:
    """A write in a read transaction is an error on PostgreSQL; SQLite has no such switch."""
    with pytest.raises(errors.StoreError), sql.reading(postgres) as conn:
        conn.execute(sa.update(table).values(version=99))
    bump(postgres)
    assert inventory_feed.version(postgres) == 1


def test_a_forked_child_makes_its_own_connections(engine: Engine) -> None:
    """Parent and child use the database after a fork without disturbing each other."""
    assert inventory_feed.version(engine) == 0
    child = os.fork()
    if child == 0:
        try:
            bump(engine)
            os._exit(0)
        except BaseException:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert inventory_feed.version(engine) == 1


def test_connections_that_the_server_closed_are_replaced(postgres: Engine) -> None:
    """A restarted PostgreSQL costs no failed statement."""
    inventory_feed.version(postgres)
    other = sql.create(postgres.url.render_as_string(hide_password=False))
    with other.connect().execution_options(isolation_level="AUTOCOMMIT") as conn:
        conn.exec_driver_sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    other.dispose()
    assert inventory_feed.version(postgres) == 0


@pytest.mark.parametrize("umask", [0o000, 0o022])
def test_the_files_of_sqlite_are_private(tmp_path: Path, umask: int) -> None:
    """The database, its log and its shared memory have mode 0600 whatever the umask."""
    before = os.umask(umask)
    try:
        made = sql.create(f"sqlite:///{tmp_path / 'poller.db'}")
        migrate.upgrade(made)
        bump(made)
    finally:
        os.umask(before)

    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    made.dispose()
    private = 0o600
    assert modes == {"poller.db": private, "poller.db-wal": private, "poller.db-shm": private}


def test_a_job_that_is_cancelled_while_it_waits_leaves_its_turn(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exception comes right after its wait; no result of a poll was written after that."""
    monkeypatch.setattr(sql, "BUSY_TIMEOUT_S", 5)
    inside, ended = threading.Event(), []

    def handler(_context: object) -> None:
        inside.set()
        bump(engine)

    context = RunContext(object(), Plan("tidy", "global", "global", 0), 1, "w")  # type: ignore[arg-type]
    call = HandlerCall(handler, context, "job-tidy")
    call.when_ended(lambda: ended.append(call.ending.code))
    with sql.writing(engine) as conn:
        conn.execute(sa.update(table).values(version=table.c.version + 1))
        call.start()
        assert inside.wait(5)
        time.sleep(0.2)  # it waits for this transaction
        assert call.cancel()
    wait_until(lambda: ended, "the end of the handler")
    assert ended == [FailureCode.CANCELED]
    bump(engine)
