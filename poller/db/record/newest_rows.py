"""Pages of a bulk table, the newest rows first, each read along an index.

A branch is a part of the wanted rows that one index serves in the order of the page. What no index
tells is checked row by row: a page examines a bounded number of rows for that, and may be short.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

#: Rows that one page examines, of all branches together.
MOST_EXAMINED = 20_000
_LEAST_OF_A_BRANCH = 400

#: Instant and tie-breaker of a row; a page begins below its key.
Key = tuple[int, Any]


@dataclass(frozen=True, slots=True)
class Order:
    """The order of a table: its instants, and what tells rows of the same instant apart."""

    table: sa.Table
    at: sa.ColumnElement[int]
    tie: sa.ColumnElement[Any]
    lowest_tie: Any  # below that of every row


@dataclass(frozen=True, slots=True)
class Branch:
    """Rows that an index serves, and a condition that is checked on each of them."""

    served: sa.ColumnElement[bool]
    checked: sa.ColumnElement[bool] | None = None


@dataclass(frozen=True, slots=True)
class Span:
    """The wanted rows: from `since_ms` to before `until_ms`, and below the key `before`."""

    since_ms: int = 0
    until_ms: int | None = None
    before: Key | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """The rows of a page, and the key of the next one; None if there are no more rows."""

    rows: Sequence[Any]
    next_key: Key | None


def read(
    conn: Connection, order: Order, branches: Sequence[Branch], span: Span, limit: int
) -> Found:
    """Read one page. The cost depends on the limit and the branches, not on the table."""
    if not branches:
        return Found((), None)
    horizon_ms = _horizon_ms(conn, order, branches, span)
    rows = conn.execute(_newest(order, branches, span, horizon_ms, limit + 1)).all()
    if len(rows) > limit:
        return Found(rows[:limit], (rows[limit - 1].page_at, rows[limit - 1].page_tie))
    if horizon_ms is not None:
        return Found(rows, (horizon_ms, order.lowest_tie))
    return Found(rows, None)


def _horizon_ms(
    conn: Connection, order: Order, branches: Sequence[Branch], span: Span
) -> int | None:
    """Return the oldest instant that this page examines; None for all."""
    most = max(_LEAST_OF_A_BRANCH, MOST_EXAMINED // len(branches))
    ends = []
    for branch in branches:
        if branch.checked is not None:
            last = _in_order(sa.select(order.at.label("at_ms")), order, branch.served, span)
            ends.append(sa.select(last.limit(1).offset(most - 1).subquery()))
    if not ends:
        return None
    every_end = sa.union_all(*ends).subquery()
    found: int | None = conn.execute(sa.select(sa.func.max(every_end.c.at_ms))).scalar()
    return found


def _newest(
    order: Order,
    branches: Sequence[Branch],
    span: Span,
    horizon_ms: int | None,
    limit: int,
) -> sa.Select[Any]:
    """Select the newest rows of all branches, each of which is read up to the limit."""
    columns = (order.table, order.at.label("page_at"), order.tie.label("page_tie"))
    parts = []
    for branch in branches:
        query = _in_order(sa.select(*columns), order, branch.served, span)
        if branch.checked is not None:
            query = query.where(branch.checked)
        if horizon_ms is not None:
            query = query.where(order.at >= horizon_ms)
        parts.append(sa.select(query.limit(limit).subquery()))
    found = sa.union_all(*parts).subquery()
    newest_first = (found.c.page_at.desc(), found.c.page_tie.desc())
    return sa.select(found).order_by(*newest_first).limit(limit)


def _in_order(
    query: sa.Select[Any], order: Order, served: sa.ColumnElement[bool], span: Span
) -> sa.Select[Any]:
    query = query.where(served, order.at >= span.since_ms)
    if span.until_ms is not None:
        query = query.where(order.at < span.until_ms)
    if span.before is not None:
        at_ms, tie = span.before
        query = query.where(order.at <= at_ms, (order.at < at_ms) | (order.tie < tie))
    return query.order_by(order.at.desc(), order.tie.desc())
