"""Pages of the ledger: the newest runs of all targets or of some, by outcome, code and age."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from poller.db import engine as sql
from poller.db.in_list import in_list
from poller.db.record import newest_rows
from poller.db.record.newest_rows import Branch, Order, Span
from poller.db.tables import devices, runs, targets
from poller.domain.batched import batched
from poller.domain.failures.outcome import Result
from poller.domain.record.run import Run

#: Outcomes that a list of failures has.
BAD = (Result.FAILED, Result.REFUSED)
#: Up to this number of targets each is looked up by its key.
_TARGET_BRANCHES = 50
_ORDER = Order(runs, runs.c.plan_ms, runs.c.target_id, 0)

#: Plan time and target of the last run of the page before.
RunKey = tuple[int, int]


class NamedRun(NamedTuple):
    """A run with the present names of its target; empty for a removed target."""

    run: Run
    device: str
    target: str


@dataclass(frozen=True, slots=True)
class RunSelection:
    """Selects runs; None and empty fields select all. Instants are plan times."""

    target_ids: Collection[int] | None = None
    outcomes: Sequence[Result] = ()
    codes: Sequence[str] = ()
    since_ms: int = 0
    until_ms: int | None = None


@dataclass(frozen=True, slots=True)
class RunPage:
    """A page of runs, the newest first, and the key of the next; None on the last page.

    A page can be short or empty although there is a next one.
    """

    runs: Sequence[NamedRun]
    next_key: RunKey | None


def page(engine: Engine, wanted: RunSelection, limit: int, before: RunKey | None = None) -> RunPage:
    """Return one page of runs. Raises StoreError."""
    span = Span(wanted.since_ms, wanted.until_ms, before)
    with sql.reading(engine) as conn:
        found = newest_rows.read(conn, _ORDER, _branches(wanted), span, limit)
        names = _names(conn, {row.target_id for row in found.rows})
    named = [_named(row, names) for row in found.rows]
    return RunPage(named, found.next_key)


def newest(engine: Engine, wanted: RunSelection, limit: int) -> list[NamedRun]:
    """Return the newest runs, from as many pages as it takes. Raises StoreError."""
    found: list[NamedRun] = []
    before = None
    while len(found) < limit:
        part = page(engine, wanted, limit - len(found), before)
        found += part.runs
        before = part.next_key
        if before is None:
            break
    return found


def recent(
    engine: Engine,
    *,
    target_ids: Collection[int] | None = None,
    limit: int = 20,
    failed_only: bool = False,
    since_ms: int = 0,
) -> list[NamedRun]:
    """Return the newest runs of these targets, or of all. Raises StoreError."""
    wanted = RunSelection(target_ids, since_ms=since_ms)
    if failed_only:
        wanted = replace(wanted, outcomes=BAD)
    return newest(engine, wanted, limit)


def newest_of_each(engine: Engine, target_ids: Sequence[int], limit: int) -> dict[int, list[Run]]:
    """Return the newest runs of each of these targets, newest first. Raises StoreError."""
    found: dict[int, list[Run]] = {target_id: [] for target_id in target_ids}
    with sql.reading(engine) as conn:
        for chunk in batched(target_ids, _TARGET_BRANCHES):
            parts = [_newest_of_target(target_id, limit) for target_id in chunk]
            for row in conn.execute(sa.union_all(*parts)):
                run = run_of(row)
                found[run.target_id].append(run)

    for runs_of_target in found.values():
        runs_of_target.sort(key=attrgetter("plan_ms"), reverse=True)
    return found


def _newest_of_target(target_id: int, limit: int) -> sa.Select[Any]:
    of_target = runs.c.target_id == target_id
    newest_first = sa.select(runs).where(of_target).order_by(runs.c.plan_ms.desc())
    return sa.select(newest_first.limit(limit).subquery())


def _branches(wanted: RunSelection) -> list[Branch]:
    """Return the branches: by target for a few, else by code and outcome, or by outcome."""
    ids = wanted.target_ids
    if ids is not None and len(ids) <= _TARGET_BRANCHES:
        checked = _filters(wanted)
        return [Branch(runs.c.target_id == target_id, checked) for target_id in ids]

    of_targets = None if ids is None else in_list(runs.c.target_id, ids)
    outcomes = wanted.outcomes or tuple(Result)
    if not wanted.codes:
        return [Branch(runs.c.outcome == outcome, of_targets) for outcome in outcomes]
    return [
        Branch(_code_and_outcome(code, outcome), of_targets)
        for code in wanted.codes
        for outcome in outcomes
    ]


def _filters(wanted: RunSelection) -> sa.ColumnElement[bool] | None:
    """Return the condition on the runs of one target; None for all of them."""
    conditions = []
    if wanted.outcomes:
        conditions.append(runs.c.outcome.in_(wanted.outcomes))
    if wanted.codes:
        conditions.append(runs.c.error_code.in_(wanted.codes))
    return sa.and_(*conditions) if conditions else None


def _code_and_outcome(code: str, outcome: Result) -> sa.ColumnElement[bool]:
    has_code = runs.c.error_code != sa.literal_column("''")  # the condition of the index
    return sa.and_(has_code, runs.c.error_code == code, runs.c.outcome == outcome)


def _names(conn: Connection, ids: Collection[int]) -> dict[int, tuple[str, str]]:
    """Return the names of device and target by target id; a removed target is missing."""
    if not ids:
        return {}
    query = (
        sa.select(targets.c.id, devices.c.name.label("device"), targets.c.name.label("target"))
        .join(devices, targets.c.device_id == devices.c.id)
        .where(in_list(targets.c.id, ids))
    )
    return {row.id: (row.device, row.target) for row in conn.execute(query)}


def _named(row: Any, names: dict[int, tuple[str, str]]) -> NamedRun:
    device, target = names.get(row.target_id, ("", ""))
    return NamedRun(run_of(row), device, target)


def run_of(row: Any) -> Run:
    """Return the run of a row of the table."""
    fields = {name: row._mapping[name] for name in Run._fields}
    fields["outcome"] = Result(fields["outcome"])
    return Run(**fields)
