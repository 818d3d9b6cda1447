"""The alerts in SQL, as the leader keeps them. Each write is one transaction of one keeper's term.

People acknowledge alerts in a column that nothing here writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from poller import errors
from poller.db import bulk
from poller.db import engine as sql
from poller.db.alerts import alert_row, refused_rows
from poller.db.alerts.alert_tables import alert_changes, alert_keeper, alerts
from poller.db.in_list import in_list
from poller.domain.alerts.alert import Alert, AlertState
from poller.domain.alerts.flow.alert_change import AlertChange
from poller.domain.alerts.flow.keeping import Kept

#: Columns that only people write, or that never change.
_FIXED = ("identity", "acknowledged")


class TermOver(errors.StoreConflict):
    """Another process keeps the alerts now. Nothing was written."""


@dataclass(frozen=True, slots=True)
class Term:
    """A period in which one process keeps the alerts; `before_ms` is when one last did so."""

    number: int
    before_ms: int


def take_term(engine: Engine, holder: str, now_ms: int) -> Term:
    """Begin a term. From now on no earlier term can write. Raises StoreError."""
    with sql.writing(engine) as conn:
        row = conn.execute(_KEEPER.with_for_update()).one()
        values = {"term": row.term + 1, "holder": holder, "seen_ms": now_ms}
        conn.execute(sa.update(alert_keeper).values(values))
        return Term(row.term + 1, row.seen_ms)


def open_alerts(engine: Engine) -> list[Alert]:
    """Return the alerts that are not over, the oldest first. Raises StoreError."""
    return _read(engine, _ROWS.where(alerts.c.state != AlertState.RESOLVED.value))


def over_since(engine: Engine, since_ms: int) -> list[Alert]:
    """Return the alerts that ended since then. Raises StoreError."""
    return _read(engine, _ROWS.where(alerts.c.resolved_ms >= max(1, since_ms)))


def _read(engine: Engine, query: sa.Select[Any]) -> list[Alert]:
    with sql.single_read(engine) as conn:
        return [alert_row.to_alert(row) for row in conn.execute(query)]


@contextmanager
def writing(engine: Engine, term: int, now_ms: int) -> Iterator[AlertWriter]:
    """Open the transaction of one pass. Raises TermOver, StoreError."""
    with sql.writing(engine) as conn:
        kept = conn.execute(_KEEP, {"of_term": term, "at_ms": now_ms})
        if kept.rowcount != 1:
            raise TermOver("another process keeps the alerts")
        yield AlertWriter(conn)


def confirm(engine: Engine, term: int, now_ms: int) -> None:
    """Record that the alerts are kept. Raises TermOver, StoreError."""
    with writing(engine, term, now_ms):
        pass


class AlertWriter:
    """The writes of one pass, in its transaction. `refused` has the alerts that the database does
    not take, with the reasons: all others are stored.
    """

    def __init__(self, conn: Connection) -> None:
        self._conn = conn
        self.refused: list[tuple[Alert, str]] = []

    def insert(self, new: Mapping[str, Alert]) -> dict[str, Alert]:
        """Store new alerts by identity, and return them with their ids; refused ones are not in
        it.
        """
        given = list(new.values())
        self.refused += refused_rows.store_by_halves(self._conn, given, self._insert)
        refused = {id(alert) for alert, _ in self.refused}
        stored = {name: alert for name, alert in new.items() if id(alert) not in refused}
        if not stored:
            return {}
        keys = [alert_row.open_key(identity) for identity in stored]
        found = self._conn.execute(_IDS.where(in_list(alerts.c.open_key, keys)))
        ids = {row.identity: row.id for row in found}
        return {identity: replace(alert, id=ids[identity]) for identity, alert in stored.items()}

    def _insert(self, new: Sequence[Alert]) -> None:
        rows = [alert_row.to_values(alert) for alert in new]
        bulk.insert(
            self._conn, alerts, [tuple(row[name] for name in _NEW) for row in rows], columns=_NEW
        )

    def write(self, kept: Kept) -> None:
        """Store the outcome of a pass. A refused alert stays as it was, and so does its history."""
        changes: dict[int, list[AlertChange]] = {}
        for change in kept.changes:
            changes.setdefault(change.alert_id, []).append(change)

        def store(changed: Sequence[Alert]) -> None:
            self.update(changed)
            self.record([each for alert in changed for each in changes.get(alert.id, ())])

        self.refused += refused_rows.store_by_halves(self._conn, kept.written, store)
        self.remove(kept.dropped)

    def update(self, changed: Sequence[Alert]) -> None:
        """Store what became of alerts."""
        self._conn.execute(_UPDATE, [_changed(alert) for alert in changed])

    def remove(self, dropped: Sequence[Alert]) -> None:
        """Remove alerts that ended before they fired, with their history."""
        ids = [alert.id for alert in dropped]
        if ids:
            changes_of = in_list(alert_changes.c.alert_id, ids)
            self._conn.execute(sa.delete(alert_changes).where(changes_of))
            self._conn.execute(sa.delete(alerts).where(in_list(alerts.c.id, ids)))

    def record(self, changes: Sequence[AlertChange]) -> None:
        """Append to the history of alerts."""
        rows = [(each.alert_id, each.at_ms, each.kind.value, each.text, "") for each in changes]
        bulk.insert(self._conn, alert_changes, rows, columns=_CHANGE)


def _changed(alert: Alert) -> dict[str, Any]:
    values = alert_row.to_values(alert)
    return {"row_id": alert.id, **{f"new_{name}": values[name] for name in _CHANGING}}


_NEW = tuple(column.name for column in alerts.columns if column.name != "id")
_CHANGING = tuple(name for name in _NEW if name not in _FIXED)
_CHANGE = ("alert_id", "at_ms", "kind", "text", "actor")
_ROWS = sa.select(alerts).order_by(alerts.c.id)
_IDS = sa.select(alerts.c.id, alerts.c.identity)
_UPDATE = (
    sa.update(alerts)
    .where(alerts.c.id == sa.bindparam("row_id"))
    .values({name: sa.bindparam(f"new_{name}", type_=alerts.c[name].type) for name in _CHANGING})
)
_KEEPER = sa.select(alert_keeper.c.term, alert_keeper.c.seen_ms)
_KEEP = (
    sa.update(alert_keeper)
    .where(alert_keeper.c.term == sa.bindparam("of_term"))
    .values(seen_ms=sa.bindparam("at_ms"))
)
