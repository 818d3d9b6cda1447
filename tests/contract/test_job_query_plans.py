"""Reads and writes of the ledger of jobs use an index: it may have tens of millions of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller.db import engine as sql
from poller.db.jobs import job_catalog, job_history, job_ledger, job_lookup, job_losses
from poller.domain.jobs.job_run import FailureCode, Plan, Status
from poller.domain.jobs.job_schedule import Cadence
from poller.domain.jobs.job_terms import JobTerms

TERMS = JobTerms("job 3", Cadence(60_000))
NAMES = [f"job {number}" for number in range(10)]
PLAN = Plan("job 3", "site", "2", 60_000_000)
ROWS = 20_000

#: Partial indexes with few rows at any time: reading one of them whole is no scan of the table.
SMALL = ("ix_job_runs_running", "ix_job_runs_retry", "ix_job_runs_failed")

_FILL = f"""
INSERT INTO job_runs (job, scope_kind, scope_id, plan_ms, origin, status, attempt, max_attempts,
    next_retry_ms, reentrant, runner, token, dispatched_ms, started_ms, heartbeat_ms, stale_ms,
    finished_ms, duration_ms, rows_affected, result, error_code, message)
WITH RECURSIVE series(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM series WHERE n < {ROWS})
SELECT 'job ' || (n % 10), 'site', CAST((n / 10) % 10 AS TEXT), n * 60000, 'schedule',
    CASE WHEN n % 2000 = 3 THEN 'RUNNING' WHEN n % 200 = 13 THEN 'FAILED' ELSE 'SUCCESS' END,
    1, 3, CASE WHEN n % 1000 = 213 THEN 1 END, true, 'r', 't', n, n, n, n + 60000, n + 5, 5, 0,
    '{{}}', '', ''
FROM series"""


@pytest.fixture(params=["with statistics", "without statistics"])
def filled(engine: Engine, request: pytest.FixtureRequest) -> Engine:
    """A ledger of many runs of ten jobs in ten scopes each."""
    terms = [JobTerms(name.replace(" ", "-"), Cadence(60_000), names_scopes=True) for name in NAMES]
    job_catalog.announce(engine, "job.poller", "poller 1.0", terms)
    with sql.writing(engine) as conn:
        conn.exec_driver_sql("UPDATE jobs SET name = replace(name, '-', ' ')")
        conn.execute(sa.text(_FILL))
        if request.param == "with statistics":
            conn.exec_driver_sql("ANALYZE")
    return engine


def plans_of(engine: Engine, action: Callable[[], object]) -> dict[str, list[str]]:
    """Every statement on the ledger that an action makes, with the plan that the database chose."""
    statements: list[tuple[str, Any]] = []

    def keep(_conn: Any, _cursor: Any, text: str, values: Any, *_rest: Any) -> None:
        if "job_runs" in text:
            statements.append((text, values))

    sa.event.listen(engine, "before_cursor_execute", keep)
    try:
        action()
    finally:
        sa.event.remove(engine, "before_cursor_execute", keep)
    explain = "EXPLAIN " if engine.dialect.name == "postgresql" else "EXPLAIN QUERY PLAN "
    with engine.connect() as conn:
        if engine.dialect.name == "postgresql":
            # A table of this size is often read whole; the index must be usable.
            conn.exec_driver_sql("SET enable_seqscan = off")
        return {
            text: [str(row[-1]) for row in conn.exec_driver_sql(explain + text, values)]
            for text, values in statements
        }


def is_scan(line: str) -> bool:
    """True for a line of a plan that reads the whole table, or a whole large index."""
    line = line.strip()
    if any(name in line for name in SMALL):
        return False
    return "Seq Scan on job_runs" in line or (line.startswith("SCAN ") and _is_of_ledger(line))


def _is_of_ledger(line: str) -> bool:
    return not any(
        name in line
        for name in ("json_each", "item", "jobs", "anon_", "newest", "clock", "CONSTANT")
    )


def claim_and(engine: Engine, finish: Callable[[int, str], object]) -> None:
    won = job_ledger.claim(engine, PLAN._replace(plan_ms=61_000_000), TERMS, "r", 0)
    finish(won.run_id, won.token)


SCOPES = [(name, "site", str(number)) for name in NAMES for number in range(10)]

ACTIONS: dict[str, Callable[[Engine], object]] = {
    "planning": lambda engine: job_history.planning(engine, SCOPES),
    "due_retries": job_history.due_retries,
    "summaries": job_history.summaries,
    "is_held_back": lambda engine: job_losses.is_held_back(engine, "job 4"),
    "close_stale": job_ledger.close_stale,
    "claim": lambda engine: job_ledger.claim(engine, PLAN, TERMS, "r", 0),
    "claim again": lambda engine: [
        job_ledger.claim(engine, PLAN._replace(plan_ms=213 * 60_000, scope_id="1"), TERMS, "r", 0)
        for _ in range(2)
    ],
    "heartbeat": lambda engine: claim_and(
        engine, lambda key, token: job_ledger.heartbeat(engine, key, token, 60)
    ),
    "succeed": lambda engine: claim_and(
        engine, lambda key, token: job_ledger.succeed(engine, key, token, 1, {})
    ),
    "fail": lambda engine: claim_and(
        engine,
        lambda key, token: job_ledger.fail(
            engine, key, token, FailureCode.HANDLER_ERROR, "no", 1.0
        ),
    ),
    "allow_again": lambda engine: job_ledger.allow_again(engine, PLAN),
    "runs of a job": lambda engine: job_history.runs(engine, "job 3"),
    "runs of a scope": lambda engine: job_history.runs(engine, "job 3", scope=("site", "2")),
    "failed runs": lambda engine: job_history.runs(engine, status=Status.FAILED),
    "failed runs of a job": lambda engine: job_history.runs(
        engine, "job 3", Status.FAILED, before_id=ROWS // 2
    ),
    "next runs of a job": lambda engine: job_history.runs(engine, "job 3", before_id=ROWS // 2),
    "next runs of a scope": lambda engine: job_history.runs(
        engine, "job 3", scope=("site", "2"), before_id=ROWS // 2
    ),
    "row of a plan": lambda engine: job_lookup.of_plan(engine, PLAN),
    "live run of a scope": lambda engine: job_lookup.live(engine, PLAN),
    "scopes of a job": lambda engine: job_lookup.scopes(engine, "job 3", 5),
    "running": lambda engine: job_history.runs(engine, status=Status.RUNNING),
}


def test_no_statement_reads_the_whole_ledger(filled: Engine) -> None:
    """Every statement finds its rows by an index; a small partial index may be read whole."""
    for name, action in ACTIONS.items():
        plans = plans_of(filled, lambda action=action: action(filled))
        assert plans, name
        for text, plan in plans.items():
            print(name, text[:60], text[-150:], *plan, sep="\n    ")
            assert [line for line in plan if is_scan(line)] == [], (name, text)
