"""The catalogue of jobs: the terms that workers announced, and what people decided about them."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from poller import errors
from poller.db import bulk, database_clock
from poller.db import engine as sql
from poller.db.access import audit_rows
from poller.db.database_clock import PresentMs
from poller.db.in_list import in_list
from poller.db.tables import jobs
from poller.domain.access.actor import Actor
from poller.domain.access.audit_entry import AuditEntry
from poller.domain.inventory import did_you_mean
from poller.domain.jobs.job_terms import JobTerms

log = logging.getLogger(__name__)

#: Characters of a planning fault.
LONGEST_FAULT = 500
_ANNOUNCED = ("name", "queue", "distribution", "terms", "announced_ms")


@dataclass(frozen=True, slots=True)
class CatalogJob:
    """A job that a worker announced."""

    name: str
    queue: str
    distribution: str  # `name version`
    terms: JobTerms
    announced_ms: int  # when a worker brought these terms, or a pause ended
    paused_ms: int | None
    paused_by: str
    gone_ms: int | None  # since then no package has the job
    told: str  # state of the last event
    planning_fault: str = ""  # why its scopes or plans could not be listed


def announce(
    engine: Engine,
    queue: str,
    distribution: str,
    terms: Sequence[JobTerms],
    since_ms: int | None = None,
) -> None:
    """Store the jobs of a package; other jobs of its queue become gone. Idempotent.

    Only changes are written: every worker announces when it starts, and now and then. With
    `since_ms`, the instant of its first announcement, jobs that were announced later stay as they
    are: workers with two versions of a package would undo each other's word for ever.
    """
    wanted = {each.name: each for each in terms}
    known = {job.name: job for job in listing(engine, with_gone=True)}
    of_others = {
        name
        for name, job in known.items()
        if job.gone_ms is None and since_ms is not None and job.announced_ms > since_ms
    }
    own = wanted.keys() - of_others
    changed = [name for name in sorted(own) if not _is_same(known.get(name), queue, wanted[name])]
    left = [
        name
        for name, job in known.items()
        if job.queue == queue and job.gone_ms is None and name not in {*wanted, *of_others}
    ]
    is_known = all(job.distribution == distribution for name, job in known.items() if name in own)
    if not changed and not left and is_known:
        return
    with sql.writing(engine) as conn:
        now_ms = database_clock.read_ms(conn)
        rows = [(name, queue, distribution, wanted[name].to_json(), now_ms) for name in changed]
        bulk.insert(conn, jobs, rows, _UPSERT, _ANNOUNCED)
        versions = sa.update(jobs).where(in_list(jobs.c.name, sorted(own)))
        conn.execute(versions.values(distribution=distribution))
        conn.execute(_leaving(left))


def _is_same(job: CatalogJob | None, queue: str, terms: JobTerms) -> bool:
    return job is not None and job.gone_ms is None and (job.queue, job.terms) == (queue, terms)


def listing(engine: Engine, with_gone: bool = False) -> list[CatalogJob]:
    """Return the jobs in the order of names; those that are gone only if wanted."""
    query = sa.select(jobs).order_by(jobs.c.name)
    if not with_gone:
        query = query.where(jobs.c.gone_ms.is_(None))
    with sql.single_read(engine) as conn:
        found = [_job(row) for row in conn.execute(query)]
    return [job for job in found if job is not None]


def planning_faults(engine: Engine, names: Sequence[str]) -> dict[str, str]:
    """Return the jobs among these that are not paused, each with its planning fault."""
    query = sa.select(jobs.c.name, jobs.c.planning_fault, jobs.c.paused_ms)
    with sql.single_read(engine) as conn:
        found = conn.execute(query.where(in_list(jobs.c.name, names))).all()
    known = {row.name: row for row in found}
    faults = {}
    for name in names:
        row = known.get(name)
        if row is None or row.paused_ms is None:
            faults[name] = "" if row is None else row.planning_fault
    return faults


def get(engine: Engine, name: str) -> CatalogJob:
    """Return a job. Raises NotFound with the nearest name."""
    found = {job.name: job for job in listing(engine, with_gone=True)}
    did_you_mean.refuse_unknown("job", name, found, "poller jobs")
    return found[name]


def _job(row: Any) -> CatalogJob | None:
    """The job of a row; None for terms of another release that cannot be read."""
    fields = dict(row._mapping)
    try:
        fields["terms"] = JobTerms.from_json(fields["terms"])
    except errors.InvalidInput as error:
        log.warning("the catalogue of jobs has a row that is left out: %s", error)
        return None
    return CatalogJob(**fields)


def pause(engine: Engine, name: str, by: str, actor: Actor | None = None) -> bool:
    """Keep a job from being planned. False: it was paused already. Raises NotFound.

    The audit log has a row of what an actor does.
    """
    get(engine, name)
    values = {"paused_ms": PresentMs(), "paused_by": by[:200]}
    entry = AuditEntry("job.pause", name)
    where = (jobs.c.name == name) & jobs.c.paused_ms.is_(None)
    return _change(engine, where, values, actor, entry)


def resume(engine: Engine, name: str, actor: Actor | None = None) -> bool:
    """Let a paused job be planned again. False: it was not paused. Raises NotFound."""
    before = get(engine, name)
    # Its missed plans are due from now on: they are not overdue before they can be started.
    values = {"paused_ms": None, "paused_by": "", "announced_ms": PresentMs()}
    entry = AuditEntry("job.resume", name, before={"paused_by": before.paused_by})
    where = (jobs.c.name == name) & jobs.c.paused_ms.is_not(None)
    return _change(engine, where, values, actor, entry)


def mark_gone(engine: Engine, names: Collection[str]) -> None:
    """Note that no package has these jobs any more. Their runs stay in the ledger."""
    if names:
        with sql.writing(engine) as conn:
            conn.execute(_leaving(names))


def _leaving(names: Collection[str]) -> sa.Update:
    present = in_list(jobs.c.name, sorted(names)) & jobs.c.gone_ms.is_(None)
    return sa.update(jobs).where(present).values(gone_ms=PresentMs())


def forget(engine: Engine, name: str, actor: Actor | None = None) -> None:
    """Remove a job from the catalogue. Its runs stay in the ledger."""
    with sql.writing(engine) as conn:
        removed = conn.execute(sa.delete(jobs).where(jobs.c.name == name)).rowcount
        if removed:
            _record(conn, actor, AuditEntry("job.forget", name))


def tell(engine: Engine, name: str, before: str, after: str) -> bool:
    """Note the state that an event told. False: another process told one first."""
    return _change(engine, (jobs.c.name == name) & (jobs.c.told == before), {"told": after})


def note_planning(engine: Engine, name: str, fault: str) -> None:
    """Store why a job cannot be planned; "" when it can."""
    _change(engine, jobs.c.name == name, {"planning_fault": fault[:LONGEST_FAULT]})


def _change(
    engine: Engine,
    where: sa.ColumnElement[bool],
    values: dict[str, Any],
    actor: Actor | None = None,
    entry: AuditEntry | None = None,
) -> bool:
    with sql.writing(engine) as conn:
        is_changed = conn.execute(sa.update(jobs).where(where).values(values)).rowcount == 1
        if is_changed and entry is not None:
            _record(conn, actor, entry)
        return is_changed


def _record(conn: Connection, actor: Actor | None, entry: AuditEntry) -> None:
    """Store the audit row of an actor's change; nothing for a change of a test."""
    if actor is not None:
        audit_rows.append(conn, actor, [entry], database_clock.read_ms(conn))


_UPSERT = (
    "ON CONFLICT (name) DO UPDATE SET queue = excluded.queue, terms = excluded.terms, "
    "distribution = excluded.distribution, announced_ms = excluded.announced_ms, gone_ms = NULL"
)
