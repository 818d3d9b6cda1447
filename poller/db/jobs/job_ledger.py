"""The ledger of job runs: one row per plan, which is lease and audit log in one.

A claim decides which runner runs a plan. The token of the claim guards every later write: a runner
that lost its lease changes nothing. Every time is that of the database's clock.
"""

from __future__ import annotations

import enum
import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from poller.db import engine as sql
from poller.db.database_clock import PresentMs
from poller.db.jobs import claim_statements
from poller.db.jobs import job_run_rows as rows
from poller.db.tables import job_runs
from poller.domain.failures import outcome
from poller.domain.jobs import run_details
from poller.domain.jobs.job_run import FailureCode, JobRun, Origin, Plan, Status
from poller.domain.jobs.job_terms import JobTerms

MESSAGE_LIMIT = 4_000
RUNNER_LIMIT = 255
_LARGEST = 2**63 - 1


class Claimed(enum.StrEnum):
    """How a claim ended."""

    WON = "won"  # the first attempt of the plan
    STOLEN = "stolen"  # a further attempt: the last one failed, or its runner was lost
    CONFLICTED = "conflicted"  # the plan is running, done, exhausted or not yet due again
    BUSY = "busy"  # another plan of the scope is running and the job does not overlap; or it pauses


@dataclass(frozen=True, slots=True)
class Claim:
    """The result of a claim. `token` is the lease of a claim that was won or stolen."""

    outcome: Claimed
    run_id: int = 0
    token: str = ""
    attempt: int = 0


def claim(
    engine: Engine,
    plan: Plan,
    terms: JobTerms,
    runner: str,
    dispatched_ms: int,
    origin: Origin = Origin.SCHEDULE,
) -> Claim:
    """Take the lease of a plan for one attempt, or say why not. Raises StoreError."""
    token = secrets.token_hex(16)
    row = {
        **plan._asdict(),
        "origin": origin.value,
        "max_attempts": terms.max_attempts,
        "reentrant": terms.reentrant,
        "runner": runner[:RUNNER_LIMIT],
        "token": token,
        "dispatched_ms": dispatched_ms,
    }
    values = {claim_statements.PREFIX + name: value for name, value in row.items()}
    values["lease_ms"] = round(terms.stale_timeout_s * 1000)
    statements = claim_statements.for_dialect(engine.dialect.name, terms.overlap)
    with sql.writing(engine) as conn:
        if not terms.overlap:
            _lock_scope(conn, plan)
        run_id = conn.execute(statements.insert, values).scalar()
        if run_id is not None:
            return Claim(Claimed.WON, run_id, token, 1)
        stolen = conn.execute(statements.steal, values).first()
        if stolen is not None:
            return Claim(Claimed.STOLEN, stolen.id, token, stolen.attempt)
        found = conn.execute(statements.is_claimable, values).one()
        if not found.is_claimable and found.origin == Origin.DEMAND != origin:
            # A person ran this plan of the schedule. Planning remembers scheduled runs only, and
            # would name the plan again and again.
            conn.execute(statements.adopt, values)
    # CONFLICTED lets the next plan of the chain start: this one must have a row then, or it would
    # be skipped for ever.
    return Claim(Claimed.BUSY if found.is_claimable else Claimed.CONFLICTED)


def _lock_scope(conn: Connection, plan: Plan) -> None:
    """Let claims of a scope wait for each other until the commit. On SQLite all writers do."""
    if conn.dialect.name == "postgresql":
        scope = "\0".join(("job_runs", plan.job, plan.scope_kind, plan.scope_id))
        digest = hashlib.blake2b(scope.encode(), digest_size=8).digest()
        key = int.from_bytes(digest, signed=True)
        conn.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": key})


def heartbeat(engine: Engine, run_id: int, token: str, stale_timeout_s: float) -> bool:
    """Extend the lease of a run. False: the lease is lost.

    A stale lease is not extended while another plan of the scope runs, which could start then.
    """
    lease_ms = round(stale_timeout_s * 1000)
    values = {"heartbeat_ms": PresentMs(), "stale_ms": PresentMs() + lease_ms}
    return _write(engine, run_id, token, values, _CAN_GO_ON)


def succeed(
    engine: Engine, run_id: int, token: str, rows_affected: int, details: Mapping[str, Any]
) -> bool:
    """End a run well. Details over 16 KiB are cut, with a note. False: the lease is lost."""
    values = {
        "status": Status.SUCCESS.value,
        "rows_affected": max(-_LARGEST, min(int(rows_affected), _LARGEST)),
        "result": run_details.storable(details),
        "error_code": "",
        "message": "",
        "losses": 0,
        **_ENDED,
    }
    return _write(engine, run_id, token, values)


def fail(
    engine: Engine,
    run_id: int,
    token: str,
    code: FailureCode,
    message: str,
    retry_in_s: float | None,
) -> bool:
    """End a run as failed; with attempts left it is run again after `retry_in_s`, None: never.

    The message is cut after 4,000 characters. False: the lease is lost.
    """
    retry_ms: Any = None
    if retry_in_s is not None:
        due_ms = PresentMs() + round(max(0.0, retry_in_s) * 1000)
        retry_ms = sa.case((job_runs.c.attempt < job_runs.c.max_attempts, due_ms), else_=None)
    values = {
        "status": Status.FAILED.value,
        "next_retry_ms": retry_ms,
        "error_code": code.value,
        "message": outcome.clean(message, MESSAGE_LIMIT),
        "losses": 0,
        **_ENDED,
    }
    return _write(engine, run_id, token, values)


def give_back(engine: Engine, run_id: int, token: str) -> bool:
    """End a run whose worker stops: the attempt does not count, and the plan is due at once.

    False: the lease is lost.
    """
    values = {
        "status": Status.FAILED.value,
        "attempt": job_runs.c.attempt - 1,
        "next_retry_ms": PresentMs(),
        "error_code": FailureCode.CANCELED.value,
        "message": "its worker stopped; the attempt does not count",
        **_ENDED,
    }
    return _write(engine, run_id, token, values)


def _write(
    engine: Engine,
    run_id: int,
    token: str,
    values: Mapping[str, Any],
    *conditions: sa.ColumnElement[bool],
) -> bool:
    """Change a run that holds its lease. False if it does not."""
    holds_lease = (
        (job_runs.c.id == run_id)
        & (job_runs.c.token == token)
        & rows.has_status(job_runs, Status.RUNNING)
    )
    with sql.writing(engine) as conn:
        changed = conn.execute(sa.update(job_runs).where(holds_lease, *conditions).values(values))
        return changed.rowcount == 1 or _is_written(conn, run_id, token, values)


def _is_written(conn: Connection, run_id: int, token: str, values: Mapping[str, Any]) -> bool:
    """Whether this ending was written before, and its reply was lost with the connection."""
    if "status" not in values:
        return False
    ending = {name: values[name] for name in ("status", "error_code")} | {"token": token}
    same = (job_runs.c[name] == value for name, value in ending.items())
    query = sa.select(job_runs.c.id).where(job_runs.c.id == run_id, *same)
    return conn.execute(query).first() is not None


def close_stale(engine: Engine) -> list[JobRun]:
    """End the abandoned runs of every job as failed, and return them as they are then.

    A re-entrant run with attempts left is due at once; another one is not run again by itself.
    After the clock was set back, leases begin again now and retries are due: a run whose runner
    died would hold its scope until the clock gets there.
    """
    abandoned = rows.is_abandoned(job_runs)
    with sql.reading(engine) as conn:
        found = [
            conn.execute(sa.select(job_runs.c.id).where(condition).limit(1)).first()
            for condition in (abandoned, _LEASE_AHEAD, _RETRY_AHEAD)
        ]
    if not any(found):
        return []
    with sql.writing(engine) as conn:
        conn.execute(sa.update(job_runs).where(_LEASE_AHEAD).values(_RENEWED))
        conn.execute(sa.update(job_runs).where(_RETRY_AHEAD).values(next_retry_ms=PresentMs()))
        closing = sa.update(job_runs).where(abandoned).values(_CLOSED).returning(*rows.COLUMNS)
        return [rows.to_run(row) for row in conn.execute(closing)]


def allow_again(engine: Engine, plan: Plan) -> bool:
    """Let a failed plan be run once more, now. False: it has no failed run."""
    more = sa.case(
        (job_runs.c.attempt < job_runs.c.max_attempts, job_runs.c.max_attempts),
        else_=job_runs.c.attempt + 1,
    )
    allowing = (
        sa.update(job_runs)
        .where(*rows.of_plan(plan._asdict()), rows.has_status(job_runs, Status.FAILED))
        .values(next_retry_ms=PresentMs(), max_attempts=more)
    )
    with sql.writing(engine) as conn:
        return conn.execute(allowing).rowcount == 1


#: Times of the future that no clock wrote which was right. The second is for two readings of it.
_AHEAD_MS = PresentMs() + 1_000
_LEASE_AHEAD = rows.has_status(job_runs, Status.RUNNING) & (job_runs.c.heartbeat_ms > _AHEAD_MS)
_RETRY_AHEAD = (
    (job_runs.c.finished_ms > sa.select(_AHEAD_MS).scalar_subquery())
    & (job_runs.c.next_retry_ms > PresentMs())
    & rows.has_status(job_runs, Status.FAILED)
)
_RENEWED: Mapping[str, Any] = {
    "heartbeat_ms": PresentMs(),
    "stale_ms": PresentMs() + job_runs.c.stale_ms - job_runs.c.heartbeat_ms,
}
_other = job_runs.alias("other")
_CAN_GO_ON = sa.or_(
    job_runs.c.stale_ms > PresentMs(),
    ~sa.exists(
        sa.select(_other.c.id).where(
            *(_other.c[name] == job_runs.c[name] for name in rows.SCOPE),
            _other.c.id != job_runs.c.id,
            rows.is_live(_other),
        )
    ),
)
_ELAPSED = PresentMs() - job_runs.c.started_ms
#: The times of an ended run. The database's clock may have been set back meanwhile.
_ENDED: Mapping[str, Any] = {
    "finished_ms": PresentMs(),
    "duration_ms": sa.case((_ELAPSED > 0, _ELAPSED), else_=0),
}
_CLOSED: Mapping[str, Any] = {
    "status": Status.FAILED.value,
    "next_retry_ms": sa.case(
        (
            sa.and_(job_runs.c.reentrant, job_runs.c.attempt < job_runs.c.max_attempts),
            PresentMs(),
        ),
        else_=None,
    ),
    "error_code": FailureCode.STALE_TIMEOUT.value,
    "message": "its runner sent no heartbeat within the stale time-out",
    "losses": job_runs.c.losses + 1,
    **_ENDED,
}
