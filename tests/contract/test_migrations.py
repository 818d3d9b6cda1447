"""Migrations bring the schema to the program's revision; any other revision is reported."""

from __future__ import annotations

import threading

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.engine import Engine

from poller import errors
from poller.db import engine as sql
from poller.db import migrate, revision, tables
from poller.db.alerts import alert_tables
from poller.db.inventory import devices, inventory_feed, targets
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.scheduling.interval import Policy


def test_migrations_make_exactly_the_tables_of_the_program(engine: Engine) -> None:
    """No table is missing, left over or of another type after all migrations."""
    with engine.connect() as conn:
        is_made_here = conn.dialect.name == "postgresql"
        opts = {
            "compare_type": True,
            "compare_server_default": True,
            # SQLite has no index of the tags in a list. Partitions of PostgreSQL belong to a table.
            "include_name": lambda name, _kind, _of: (
                not str(name).startswith("history_") or name in alert_tables.metadata.tables
                if is_made_here
                else name != "ix_devices_tags"
            ),
            "include_object": lambda _object, name, *_of: is_made_here or name != "ix_devices_tags",
        }
        context = MigrationContext.configure(conn, opts=opts)
        assert compare_metadata(context, alert_tables.metadata) == []


def test_the_program_has_the_revision_of_its_last_migration() -> None:
    """The constant that every command compares with is the head of the migration scripts."""
    assert ScriptDirectory.from_config(migrate.script_config()).get_heads() == [revision.HEAD]


def test_upgrade_reports_where_it_came_from_and_is_idempotent(empty_engine: Engine) -> None:
    """The first upgrade starts from nothing; the second changes nothing."""
    assert migrate.current(empty_engine) is None
    assert migrate.upgrade(empty_engine) == (None, migrate.head())
    assert migrate.upgrade(empty_engine) == (migrate.head(), migrate.head())
    assert migrate.current(empty_engine) == migrate.head()
    migrate.check(empty_engine)


def test_targets_of_the_first_schema_stay_as_they_are(empty_engine: Engine) -> None:
    """Targets of the first schema become fixed, and ids of removed targets are not used again."""
    with sql.writing(empty_engine) as conn:
        command.upgrade(migrate.script_config(conn), "0001")
        conn.execute(sa.text(_OLD_DEVICE))
        for name in ("kept", "gone"):
            conn.execute(sa.text(_OLD_TARGET), {"name": name})
        conn.execute(sa.text("DELETE FROM targets WHERE name = 'gone'"))
    assert migrate.upgrade(empty_engine) == ("0001", migrate.head())
    [kept] = targets.of_device(empty_engine, "sw1")
    assert (kept.name, kept.policy, kept.interval_ms, kept.min_ms) == (
        "kept",
        Policy.FIXED,
        60_000,
        None,
    )
    added = targets.add(empty_engine, "sw1", TargetDraft(collector="snmp", policy=Policy.ADAPTIVE))
    assert added.id > kept.id + 1


_OLD_DEVICE = """
INSERT INTO devices (name, address, tags, requires, enabled, created_at, updated_at)
VALUES ('sw1', '::1', '[]', '{}', true, '2026-01-01 00:00:00', '2026-01-01 00:00:00')"""
_OLD_TARGET = """
INSERT INTO targets (device_id, name, collector, options, requires, interval_ms, timeout_ms,
                     enabled, version, created_at, updated_at)
SELECT id, :name, 'snmp', '{}', '{}', 60000, 10000, true, 1, created_at, updated_at FROM devices"""


@pytest.mark.parametrize(
    "columns",
    [
        "policy = 'adaptive'",
        "policy = 'adaptive', min_ms = 5000, max_ms = 90000",
        "policy = 'adaptive', min_ms = 5000, max_ms = 59999, staleness = 'age'",
        "policy = 'adaptive', min_ms = 999, max_ms = 90000, staleness = 'age'",
        "min_ms = 5000",
        "staleness = 'age'",
        "policy = 'other'",
    ],
)
def test_the_database_refuses_an_impossible_schedule(engine: Engine, columns: str) -> None:
    """The database refuses an impossible schedule from any writer."""
    devices.add(engine, DeviceDraft("sw1", "::1"), [TargetDraft(collector="snmp")])
    with pytest.raises(errors.StoreError), sql.writing(engine) as conn:
        conn.execute(sa.text(f"UPDATE targets SET {columns}"))


def test_an_empty_database_is_refused_with_the_upgrade_command(empty_engine: Engine) -> None:
    """The error for a missing schema names the upgrade command."""
    with pytest.raises(errors.SchemaMismatch) as caught:
        migrate.check(empty_engine)
    assert "poller db upgrade" in caught.value.hint


def test_a_newer_database_is_refused_and_not_touched(engine: Engine) -> None:
    """A database of a later program is neither used nor downgraded."""
    with sql.writing(engine) as conn:
        conn.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    for action in (migrate.check, migrate.upgrade):
        with pytest.raises(errors.SchemaMismatch, match="9999") as caught:
            action(engine)
        assert "newer" in caught.value.cause
    assert migrate.current(engine) == "9999"


def test_an_older_database_is_refused_until_it_is_upgraded(engine: Engine) -> None:
    """The error for an older database names both revisions and the upgrade command."""
    with pytest.raises(errors.SchemaMismatch, match="0999") as caught:
        revision.check(engine, needed="0999")
    assert "poller db upgrade" in caught.value.hint


def test_concurrent_upgrades_all_succeed(database_url: str) -> None:
    """Six concurrent first starts leave one schema and no error."""
    engines = [sql.create(database_url) for _ in range(6)]
    barrier, failures = threading.Barrier(len(engines)), []

    def start(engine: Engine) -> None:
        barrier.wait()
        try:
            migrate.upgrade(engine)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=start, args=(engine,)) for engine in engines]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert inventory_feed.version(engines[0]) == 0
    for engine in engines:
        engine.dispose()


def test_a_query_on_an_empty_database_names_the_upgrade(empty_engine: Engine) -> None:
    """The first statement on an unchecked empty database fails with the upgrade command."""
    with pytest.raises(errors.SchemaMismatch) as caught:
        inventory_feed.version(empty_engine)
    assert "poller db upgrade" in caught.value.hint


def test_routeros_targets_keep_what_they_spoke_before_tls_was_the_default(
    empty_engine: Engine,
) -> None:
    """The old default becomes an option, and the audit log says of how many targets."""
    stored = {
        "plain": {"port": 8728},
        "said": {"tls": False},
        "system": {"tls": True},
        "pinned": {"tls": True, "fingerprint": "ab" * 32},
        "named": {"tls": True, "server_name": "core"},
        "unchecked": {"tls": True, "insecure": True},
    }
    with sql.writing(empty_engine) as conn:
        command.upgrade(migrate.script_config(conn), "0009")
        conn.execute(sa.text(_OLD_DEVICE))
        conn.execute(sa.text(_OLD_TARGET), {"name": "snmp"})
        for name, options in stored.items():
            conn.execute(sa.text(_OLD_TARGET), {"name": name})
            made = sa.update(tables.targets).where(tables.targets.c.name == name)
            conn.execute(made.values(collector="routeros", options=options))
    migrate.upgrade(empty_engine)
    now = {each.name: dict(each.options) for each in targets.of_device(empty_engine, "sw1")}
    assert now == {
        **stored,
        "plain": {"port": 8728, "tls": False},
        "snmp": {},
    }
    with sql.reading(empty_engine) as conn:
        query = sa.select(tables.audit.c.count, tables.audit.c.after).order_by(tables.audit.c.id)
        assert [tuple(row) for row in conn.execute(query)] == [(1, {"options": {"tls": False}})]
