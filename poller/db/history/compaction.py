"""Move polls from `readings` into blocks, some targets in one transaction.

A crash undoes the step and the next one does it again: no poll is lost or doubled. The newest poll
of a target stays in `readings`, where a look at the last values finds it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import psycopg
import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from poller import errors
from poller.db import engine as sql
from poller.db.history import blocks, rollups
from poller.db.history.rollups import Touched
from poller.db.tables import readings
from poller.domain.batched import batched
from poller.domain.history import block_merge
from poller.domain.history.block import Block
from poller.domain.history.poll_rows import RawPoll

#: Targets that one look finds.
LOOK = 200
#: Targets whose polls one transaction moves: some tens of milliseconds. Writers of SQLite wait.
CHUNK = 4
CHUNK_POSTGRESQL = 32
#: Polls of one target that one transaction moves at most.
MOST_POLLS = 120
#: Steps of several processes queue up on this constant.
_ADVISORY_LOCK = 7_305_511_803
STATEMENT_TIMEOUT = "20s"
#: Later than every block.
_ANY_MS = 2**62

Rest = Callable[[float], None]


class Due(NamedTuple):
    """A target with polls to move: those before this instant."""

    target_id: int
    before_ms: int


class Walk(NamedTuple):
    """Targets that have fresh polls: those with polls to move, and the last one looked at."""

    due: list[Due]
    last: int | None  # None: there are no further targets
    cut: frozenset[int]  # targets that have more polls than one step moves


class Moved(NamedTuple):
    """The numbers of one step."""

    polls: int
    blocks: int


@dataclass(slots=True)
class Compacted:
    """The numbers of a run, and the targets whose polls could not be moved."""

    polls: int = 0
    blocks: int = 0
    is_complete: bool = False
    damaged: list[int] = field(default_factory=list)
    fault: str = ""


def compact(engine: Engine, now_ms: int, rest: Rest, until_mono: float) -> Compacted:
    """Move all settled polls, or as many as the time allows. Idempotent. Raises StoreError.

    After each step the run rests as long as the step took, so that polls get the processor and
    the lock. A target with a damaged block is left as it is.
    """
    done = Compacted()
    chunk = CHUNK_POSTGRESQL if engine.dialect.name == "postgresql" else CHUNK
    after: int | None = 0
    while after is not None:
        found = walk(engine, after, LOOK, now_ms)
        due = [each for each in found.due if each.target_id not in done.damaged]
        for some in batched(due, chunk):
            if time.monotonic() >= until_mono:
                return done
            started_mono = time.monotonic()
            _step_or_parts(engine, some, done)
            rest(time.monotonic() - started_mono)
        # A damaged target keeps its polls: to look for them once more would go on for ever.
        if not found.cut.difference(done.damaged):
            after = found.last
    done.is_complete = True
    return done


def _step_or_parts(engine: Engine, due: Sequence[Due], done: Compacted) -> None:
    """Move the polls of these targets; one by one if something about one of them is damaged."""
    try:
        moved = step(engine, due)
    except (errors.StoreUnavailable, errors.StoreConflict):
        raise
    except errors.StoreError as error:
        if len(due) == 1:
            done.damaged.append(due[0].target_id)
            done.fault = str(error)
            return
        for each in due:
            _step_or_parts(engine, [each], done)
    else:
        done.polls += moved.polls
        done.blocks += moved.blocks


def walk(engine: Engine, after: int, limit: int, now_ms: int) -> Walk:
    """Look at the targets with fresh polls that follow `after`. Raises StoreError."""
    with sql.reading(engine) as conn:
        found = conn.execute(_WALK, {"after": after, "limit": limit}).all()
        rows = [row for row in found if row.id is not None]
        settled = {row.id: block_merge.settled_before(row.id, now_ms) for row in rows}
        waiting = {row.id: row.oldest_ms for row in rows if row.oldest_ms < settled[row.id]}
        due, cut = _bounded(conn, waiting, settled) if waiting else ([], frozenset())
    return Walk(due, rows[-1].id if len(rows) == limit else None, cut)


def _bounded(
    conn: Connection, oldest_ms: Mapping[int, int], settled: Mapping[int, int]
) -> tuple[list[Due], frozenset[int]]:
    """Leave the newest poll of each target, and polls beyond those of one step.

    Returns what is left to move, and the targets that have more.
    """
    due = []
    cut = set()
    ids = list(oldest_ms)
    is_postgresql = conn.dialect.name == "postgresql"
    values = {"most": MOST_POLLS, "ids": ids if is_postgresql else json.dumps(ids)}
    for target_id, newest_ms, next_ms in conn.execute(_ENDS[conn.dialect.name], values):
        before_ms = min(settled[target_id], newest_ms)
        if next_ms is not None and next_ms < before_ms:
            before_ms = next_ms
            cut.add(target_id)
        if oldest_ms[target_id] < before_ms:
            due.append(Due(target_id, before_ms))
    return due, frozenset(cut)


def step(engine: Engine, due: Sequence[Due]) -> Moved:
    """Move the polls of these targets, all or none. Idempotent. Raises StoreError."""
    with sql.writing(engine) as conn:
        if conn.dialect.name == "postgresql":
            conn.exec_driver_sql(_PREPARE)
        polls = _take(conn, sorted(due))
        if not polls:
            return Moved(0, 0)
        touched = _join(conn, polls)
        written = blocks.write(conn, {each.target_id: each.blocks for each in touched})
        rollups.remake(conn, touched)
    return Moved(sum(map(len, polls.values())), written)


def _take(conn: Connection, due: Sequence[Due]) -> dict[int, list[RawPoll]]:
    """Delete the polls of these targets from `readings` and return them.

    One statement does both: a poll that is written meanwhile is neither read nor deleted.
    """
    taken: dict[int, list[RawPoll]] = {}
    if conn.dialect.name == "postgresql":
        ids = [each.target_id for each in due]
        before = [each.before_ms for each in due]
        for target_id, *poll in _binary_rows(conn, _TAKE_POSTGRESQL, (ids, before)):
            taken.setdefault(target_id, []).append(RawPoll(*poll))
        return taken
    for each in due:
        polls = [RawPoll(*row) for row in conn.exec_driver_sql(_TAKE_SQLITE, tuple(each))]
        if polls:
            taken[each.target_id] = polls
    return taken


def _binary_rows(
    conn: Connection, statement: str, values: tuple[list[int], ...]
) -> list[tuple[Any, ...]]:
    """Run a statement of PostgreSQL whose bytes come as they are, not as hexadecimal text."""
    driver: Any = conn.connection.driver_connection
    try:
        with driver.cursor(binary=True) as cursor:
            cursor.execute(statement, values)
            return list(cursor.fetchall())
    except psycopg.Error as error:
        raise sa.exc.DBAPIError(statement, None, error) from error


def _join(conn: Connection, taken: dict[int, list[RawPoll]]) -> list[Touched]:
    """Join polls with the stored blocks that they belong to."""
    instants = {target_id: [poll.at_ms for poll in polls] for target_id, polls in taken.items()}
    first_ms = min(map(min, instants.values()))
    heads = blocks.heads(conn, list(taken), block_merge.day_of(first_ms), _ANY_MS)
    placements = {
        target_id: block_merge.place(heads.get(target_id, ()), polls)
        for target_id, polls in taken.items()
    }
    keys = {
        (target_id, placement.head.start_ms)
        for target_id, found in placements.items()
        for placement in found
        if placement.head is not None
    }
    stored = blocks.load(conn, keys)
    touched = []
    for target_id, found in placements.items():
        written: list[Block] = []
        for head, polls in found:
            block = stored[target_id, head.start_ms] if head else None
            written += _joined(target_id, block, polls)
        written.sort(key=lambda block: block.start_ms)
        first_ms, last_ms = min(instants[target_id]), max(instants[target_id])
        stored_heads = heads.get(target_id, ())
        touched.append(Touched(target_id, first_ms, last_ms, written, stored_heads))
    return touched


def _joined(target_id: int, stored: Block | None, polls: list[RawPoll]) -> list[Block]:
    try:
        return block_merge.joined(stored, polls)
    except ValueError as error:
        message = f"a poll of target {target_id} cannot be read"
        raise errors.StoreError(message, str(error)) from None


_first = sa.select(sa.func.min(readings.c.target_id).label("id")).where(
    readings.c.target_id > sa.bindparam("after")
)
_ids = _first.cte("ids", recursive=True)
_next = sa.select(sa.func.min(readings.c.target_id)).where(readings.c.target_id > _ids.c.id)
_walked = _ids.union_all(sa.select(_next.scalar_subquery()).where(_ids.c.id.is_not(None)))
_some = sa.select(_walked.c.id).limit(sa.bindparam("limit")).subquery("some")
_own = readings.c.target_id == _some.c.id
_oldest = sa.select(sa.func.min(readings.c.at_ms)).where(_own).scalar_subquery()
_WALK = sa.select(_some.c.id, _oldest.label("oldest_ms"))

_END = """SELECT due.id, (SELECT max(at_ms) FROM readings WHERE target_id = due.id),
    (SELECT at_ms FROM readings WHERE target_id = due.id ORDER BY at_ms LIMIT 1 OFFSET :most)
    FROM """
_ENDS = {
    "sqlite": sa.text(_END + "(SELECT value AS id FROM json_each(:ids)) AS due"),  # noqa: S608  constants
    "postgresql": sa.text(_END + "unnest(CAST(:ids AS bigint[])) AS due (id)"),
}

#: One step at a time in the whole cluster. Each target is found by the key: without these settings
#: the planner may read all of `readings`.
_PREPARE = f"""SELECT set_config('statement_timeout', '{STATEMENT_TIMEOUT}', true),
    set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
    set_config('enable_mergejoin', 'off', true), pg_advisory_xact_lock({_ADVISORY_LOCK})"""
_TAKE_POSTGRESQL = """DELETE FROM readings
    USING unnest(%b::bigint[], %b::bigint[]) AS due (id, before_ms)
    WHERE readings.target_id = due.id AND readings.at_ms < due.before_ms
    RETURNING readings.target_id, readings.at_ms, readings.series_set_id, readings."values" """
_TAKE_SQLITE = """DELETE FROM readings WHERE target_id = ? AND at_ms < ?
    RETURNING at_ms, series_set_id, "values" """
