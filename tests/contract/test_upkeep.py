"""Upkeep of the database: statistics on both backends; free pages and the log of a SQLite file."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller.db import engine as sql
from poller.db import migrate, postgresql_upkeep, sqlite_upkeep
from poller.db.record import run_ledger, run_pages
from poller.db.sqlite_upkeep import FileUpkeep
from poller.db.tables import metadata, runs
from poller.domain.failures.outcome import Result
from poller.domain.record.run import Run

TABLES = len(metadata.sorted_tables)


@pytest.fixture
def sqlite(sqlite_url: str) -> Iterator[Engine]:
    engine = sql.create(sqlite_url)
    migrate.upgrade(engine)
    yield engine
    engine.dispose()


@pytest.fixture
def postgresql(fresh_postgres_url: str) -> Iterator[Engine]:
    engine = sql.create(fresh_postgres_url)
    migrate.upgrade(engine)
    yield engine
    engine.dispose()


def store_runs(engine: Engine, count: int, size: int = 0) -> None:
    rows = [Run(1, slot, Result.OK, message="x" * size) for slot in range(1, count + 1)]
    run_ledger.write(engine, rows)


def keep(engine: Engine) -> FileUpkeep:
    return sqlite_upkeep.keep(engine, rest=lambda _: None, until_mono=time.monotonic() + 60)


def path(engine: Engine) -> Path:
    return Path(str(engine.url.database))


def value(engine: Engine, text: str) -> object:
    with engine.connect() as conn:
        return conn.exec_driver_sql(text).scalar()


def test_the_planner_of_sqlite_gets_statistics(sqlite: Engine) -> None:
    """Every table that has rows is counted, more or less."""
    store_runs(sqlite, 500)
    assert keep(sqlite).tables == TABLES
    found = value(sqlite, "SELECT max(CAST(stat AS INTEGER)) FROM sqlite_stat1 WHERE tbl = 'runs'")
    assert isinstance(found, int)
    assert 100 < found < 1_000


def test_a_new_file_gives_back_its_free_pages(
    sqlite: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In small steps, each with a rest after it; a share stays for new rows."""
    monkeypatch.setattr(sqlite_upkeep, "FEW_PAGES", 10)
    store_runs(sqlite, 3_000, size=2_000)
    sqlite_upkeep.checkpoint(sqlite)
    before_bytes = path(sqlite).stat().st_size
    with sql.writing(sqlite) as conn:
        conn.execute(sa.delete(runs).where(runs.c.plan_ms > 300))
    rests: list[float] = []
    done = sqlite_upkeep.keep(sqlite, rests.append, time.monotonic() + 60)
    assert done.gives_back
    assert done.freed_pages > 1_000
    steps = len(rests) - TABLES
    assert done.freed_pages / steps <= sqlite_upkeep.PAGES
    assert steps < 2 * done.freed_pages / sqlite_upkeep.PAGES
    assert done.free_pages <= max(10, round(done.pages * sqlite_upkeep.FREE_SHARE)) + 1
    assert path(sqlite).stat().st_size < before_bytes / 4
    assert len(run_pages.recent(sqlite, limit=1_000)) == 300
    assert value(sqlite, "PRAGMA integrity_check") == "ok"


def test_few_free_pages_stay(sqlite: Engine) -> None:
    """The rows of tomorrow use them."""
    store_runs(sqlite, 100, size=2_000)
    with sql.writing(sqlite) as conn:
        conn.execute(sa.delete(runs))
    done = keep(sqlite)
    assert (done.freed_pages, done.free_pages > 10) == (0, True)


def test_a_file_of_an_earlier_release_is_not_copied(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its free pages stay, and the result says so."""
    monkeypatch.setattr(sqlite_upkeep, "FEW_PAGES", 10)
    engine = sql.create(sqlite_url)
    with sqlite3.connect(path(engine)) as old:
        old.execute("CREATE TABLE other (id INTEGER)")
    migrate.upgrade(engine)
    store_runs(engine, 1_000, size=2_000)
    with sql.writing(engine) as conn:
        conn.execute(sa.delete(runs))
    done = keep(engine)
    assert (done.gives_back, done.freed_pages) == (False, 0)
    assert done.free_pages > 100
    engine.dispose()


def test_a_long_log_is_cut_unless_a_reader_uses_it(
    sqlite: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader of an old state is not disturbed, and writers wait for a moment at most."""
    monkeypatch.setattr(sqlite_upkeep, "LOG_BYTES", 10_000)
    store_runs(sqlite, 1)
    with sql.reading(sqlite) as reader:
        assert reader.execute(sa.select(sa.func.count()).select_from(runs)).scalar() == 1
        store_runs(sqlite, 200, size=2_000)
        assert sqlite_upkeep.checkpoint(sqlite) > 10_000
        assert reader.execute(sa.select(sa.func.count()).select_from(runs)).scalar() == 1
    assert sqlite_upkeep.checkpoint(sqlite) == 0
    log = path(sqlite).with_name(path(sqlite).name + "-wal")
    assert log.stat().st_size == 0
    with sqlite.connect() as conn:
        assert conn.exec_driver_sql("PRAGMA busy_timeout").scalar() == sql.BUSY_TIMEOUT_S * 1000


def test_the_planner_of_postgresql_gets_statistics(postgresql: Engine) -> None:
    """The owner of the tables renews those of all."""
    store_runs(postgresql, 500)
    steps: list[None] = []
    done = postgresql_upkeep.analyze(postgresql, lambda: steps.append(None))
    assert (done, len(steps)) == ((TABLES, []), TABLES)
    query = "SELECT CAST(reltuples AS int) FROM pg_class WHERE relname = 'runs'"
    assert value(postgresql, query) == 500


def test_tables_of_another_role_are_left_out(postgresql: Engine) -> None:
    """The role of the workers owns no table; the server's own analyze is enough."""
    with postgresql.begin() as conn:
        conn.execute(sa.text("DROP ROLE IF EXISTS upkeep_guest"))
        conn.execute(sa.text("CREATE ROLE upkeep_guest LOGIN"))
    guest = sql.create(
        postgresql.url.set(username="upkeep_guest").render_as_string(hide_password=False)
    )
    analyzed, left_out = postgresql_upkeep.analyze(guest, lambda: None)
    assert (analyzed, len(left_out)) == (0, TABLES)
    guest.dispose()
