"""The audit log: one row per change, in the change's transaction, never altered."""

from __future__ import annotations

from contextlib import suppress

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.engine import Engine

from poller import errors
from poller.db import engine as sql
from poller.db.access import audit_rows
from poller.db.access.audit_rows import AuditQuery
from poller.db.inventory import inventory_feed
from poller.db.inventory.inventory_feed import Author
from poller.db.tables import audit
from poller.domain.access import audit_entry
from poller.domain.access.actor import Actor, ActorKind
from poller.domain.access.audit_entry import AuditEntry

OPERATOR = Author(Actor("kim", ActorKind.CLI, "host-1"))


def record(engine: Engine, *entries: AuditEntry) -> None:
    with inventory_feed.change(engine, OPERATOR) as change:
        for entry in entries:
            change.record(entry)


def test_a_change_is_recorded_with_its_actor(engine: Engine) -> None:
    """The row says who, from where, what, before and after."""
    record(engine, AuditEntry("device.edit", "sw1", {"address": "a"}, {"address": "b"}))
    [row] = audit_rows.listing(engine, AuditQuery())
    assert (row.actor, row.kind, row.address) == ("kim", "cli", "host-1")
    assert (row.action, row.subject, row.before, row.after, row.count) == (
        "device.edit",
        "sw1",
        {"address": "a"},
        {"address": "b"},
        1,
    )
    assert row.at_ms > 0


def test_a_change_that_fails_leaves_no_row(engine: Engine) -> None:
    """The row is in the transaction of the change."""
    with suppress(ZeroDivisionError), inventory_feed.change(engine, OPERATOR) as change:
        change.record(AuditEntry("device.edit", "sw1"))
        raise ZeroDivisionError
    assert audit_rows.listing(engine, AuditQuery()) == []


def test_the_database_refuses_to_alter_a_row(engine: Engine) -> None:
    """The log only grows, whoever writes the statement."""
    record(engine, AuditEntry("device.edit", "sw1"))
    update = sa.update(audit).values(actor="somebody else")
    with pytest.raises((errors.PollerError, sa.exc.DBAPIError)), sql.writing(engine) as conn:
        conn.execute(update)
    [row] = audit_rows.listing(engine, AuditQuery())
    assert row.actor == "kim"


def test_the_database_refuses_to_replace_a_row(engine: Engine) -> None:
    """SQLite has REPLACE INTO, PostgreSQL has ON CONFLICT DO UPDATE: neither alters a row."""
    record(engine, AuditEntry("device.edit", "sw1"))
    with sql.reading(engine) as conn:
        row = dict(conn.execute(sa.select(audit)).one()._mapping)
    changed = {**row, "actor": "somebody else"}
    is_sqlite = engine.dialect.name == "sqlite"
    statement: sa.Executable = sa.insert(audit).prefix_with("OR REPLACE").values(changed)
    if not is_sqlite:
        insert = postgresql.insert(audit).values(changed)
        statement = insert.on_conflict_do_update(index_elements=["id"], set_={"actor": "x"})
    with pytest.raises((errors.PollerError, sa.exc.DBAPIError)), sql.writing(engine) as conn:
        conn.execute(statement)
    [kept] = audit_rows.listing(engine, AuditQuery())
    assert kept.actor == "kim"


def test_an_edit_that_changes_nothing_leaves_no_row(engine: Engine) -> None:
    """Equal fields before and after are no change."""
    record(engine, audit_entry.differing("site.edit", "ams", {"requires": {}}, {"requires": {}}))
    assert audit_rows.listing(engine, AuditQuery()) == []


def test_rows_are_filtered_and_paged_newest_first(engine: Engine) -> None:
    """A page continues before the last id of the page before it."""
    record(engine, *(AuditEntry("device.edit", f"sw{number}") for number in range(5)))
    record(engine, AuditEntry("site.remove", "ams"))
    first = audit_rows.listing(engine, AuditQuery(action="device.edit", limit=3))
    assert [row.subject for row in first] == ["sw4", "sw3", "sw2"]
    rest = AuditQuery(action="device.edit", limit=3, before_id=first[-1].id)
    assert [row.subject for row in audit_rows.listing(engine, rest)] == ["sw1", "sw0"]
    assert len(audit_rows.listing(engine, AuditQuery(actor="kim"))) == 6
    assert audit_rows.listing(engine, AuditQuery(actor="lee")) == []
    [removed] = audit_rows.listing(engine, AuditQuery(subject="ams"))
    assert removed.action == "site.remove"


def test_rows_of_a_time_and_the_actions_of_the_newest_rows(engine: Engine) -> None:
    """`since` is within the time and `until` is not."""
    with sql.writing(engine) as conn:
        for at_ms, action in ((1_000, "site.remove"), (2_000, "device.edit"), (3_000, "job.run")):
            audit_rows.append(conn, OPERATOR.actor, [AuditEntry(action, "x")], at_ms)
    found = audit_rows.listing(engine, AuditQuery(since_ms=1_000, until_ms=3_000))
    assert [row.action for row in found] == ["device.edit", "site.remove"]
    assert audit_rows.recent_actions(engine, 2) == ["device.edit", "job.run"]


def test_a_document_that_is_too_long_is_replaced_by_its_size(engine: Engine) -> None:
    """An import of a fleet does not fill the log."""
    record(engine, AuditEntry("device.import", "file", after={"names": ["x" * 100] * 1_000}))
    [row] = audit_rows.listing(engine, AuditQuery())
    assert "characters" in row.after["left_out"]
