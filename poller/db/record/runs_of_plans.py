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
        rows = conn.execute(_statement(conn, plans))
        return {row.target_id: run_pages.run_of(row) for row in rows}


def _statement(conn: Connection, plans: Mapping[int, int]) -> sa.Select[Any]:
    """Select by pairs of target and plan time, which travel as one or two parameters."""
    if conn.dialect.name == "postgresql":
        pairs = (
            sa.func.unnest(
                sa.bindparam(None, list(plans), type_=ARRAY(sa.BigInteger)),
                sa.bindparam(None, list(plans.values()), type_=ARRAY(sa.BigInteger)),
            )
            .table_valued("key", "value")
            .render_derived(name="pairs")
        )
    else:
        pairs = sa.func.json_each(json.dumps(plans)).table_valued("key", "value", name="pairs")
    is_run = sa.and_(
        runs.c.target_id == sa.cast(pairs.c.key, sa.BigInteger),
        runs.c.plan_ms == sa.cast(pairs.c.value, sa.BigInteger),
    )
    return sa.select(runs).select_from(pairs.join(runs, is_run))
