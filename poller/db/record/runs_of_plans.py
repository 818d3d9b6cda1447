"""Runs of targets at given plan times: each is one look at the key of the ledger."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.engine import Connection, Engine

from poller.db import engine as sql
from poller.db.record import run_pages
from poller.db.tables import runs
from poller.domain.record.run import Run


def find(engine: Engine, plans: Mapping[int, int]) -> dict[int, Run]:
    """Return the runs by target, without those that are not stored. Raises StoreError.

    `plans` has the plan time of each target.
    """
    with sql.single_read(engine) as conn:
        rows = _rows(conn, _RUNS, plans)
        return {row.target_id: run_pages.run_of(row) for row in rows}


def durations_ms(engine: Engine, plans: Mapping[int, int]) -> dict[int, int]:
    """Return how long the last attempt of each of these runs took. Raises StoreError."""
    with sql.single_read(engine) as conn:
        return {row.target_id: row.collect_ms for row in _rows(conn, _DURATIONS, plans)}


def _rows(
    conn: Connection, statements: Mapping[str, sa.Executable], plans: Mapping[int, int]
) -> sa.CursorResult[Any]:
    """Select by pairs of target and plan time, which travel as one or two parameters."""
    name = conn.dialect.name
    values: dict[str, Any] = {"plans": json.dumps(plans)}
    if name == "postgresql":
        values = {"targets": list(plans), "instants": list(plans.values())}
    return conn.execute(statements[name], values)


def _statements(*columns: sa.Column[Any]) -> dict[str, sa.Executable]:
    """The statements by dialect. A join in SQLite is a CROSS JOIN: it starts from the pairs, where
    the planner without statistics would read the whole ledger.
    """
    names = ", ".join(f"runs.{column.name}" for column in columns)
    sqlite = sa.text(
        f"SELECT {names} FROM json_each(:plans) AS pairs CROSS JOIN runs"  # noqa: S608 - columns
        " ON runs.target_id = CAST(pairs.key AS INTEGER) AND runs.plan_ms = pairs.value"
    )
    pairs = (
        sa.func.unnest(
            sa.bindparam("targets", type_=ARRAY(sa.BigInteger)),
            sa.bindparam("instants", type_=ARRAY(sa.BigInteger)),
        )
        .table_valued("key", "value")
        .render_derived(name="pairs")
    )
    is_run = sa.and_(runs.c.target_id == pairs.c.key, runs.c.plan_ms == pairs.c.value)
    postgresql = sa.select(*columns).select_from(pairs.join(runs, is_run))
    return {"sqlite": sqlite.columns(*columns), "postgresql": postgresql}


_RUNS = _statements(*runs.columns)
_DURATIONS = _statements(runs.c.target_id, runs.c.collect_ms)
