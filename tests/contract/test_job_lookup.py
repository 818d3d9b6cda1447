"""Single rows of the ledger and the scopes of a job, as a person asks for them."""

from __future__ import annotations

from sqlalchemy.engine import Engine

from poller.db import database_clock
from poller.db.jobs import job_ledger, job_lookup
from poller.domain.jobs.job_run import FailureCode, Plan, Status
from poller.domain.jobs.job_schedule import Cadence
from poller.domain.jobs.job_terms import JobTerms

TERMS = JobTerms("tidy", Cadence(60_000), names_scopes=True)
START_MS = 30_000_000 * 60_000


def plan(kind: str = "site", key: str = "ams", minute: int = 0, job: str = "tidy") -> Plan:
    return Plan(job, kind, key, START_MS + minute * 60_000)


def claim(engine: Engine, of: Plan) -> job_ledger.Claim:
    return job_ledger.claim(engine, of, TERMS, "w1@a", of.plan_ms)


def test_a_plan_has_its_row_or_none(engine: Engine) -> None:
    """The row of that scope and instant, and of no other."""
    claim(engine, plan())
    found = job_lookup.of_plan(engine, plan())
    assert found is not None
    assert (found.plan, found.status, found.runner) == (plan(), Status.RUNNING, "w1@a")
    assert found.started_ms <= database_clock.now_ms(engine)
    assert job_lookup.of_plan(engine, plan(minute=1)) is None
    assert job_lookup.of_plan(engine, plan(key="fra")) is None


def test_the_live_run_of_a_scope(engine: Engine) -> None:
    """Of any plan of the scope, while it has its lease; an ended one is not live."""
    held = claim(engine, plan())
    live = job_lookup.live(engine, plan(minute=5))
    assert live is not None
    assert live.id == held.run_id
    assert job_lookup.live(engine, plan(key="fra")) is None
    job_ledger.fail(engine, held.run_id, held.token, FailureCode.HANDLER_ERROR, "no", None)
    assert job_lookup.live(engine, plan()) is None


def test_scopes_are_listed_once_and_in_order(engine: Engine) -> None:
    """However many plans each has; those of other jobs are left out."""
    for kind, key in (("site", "fra"), ("global", "global"), ("site", "ams"), ("target", "7")):
        for minute in range(3):
            held = claim(engine, plan(kind, key, minute))
            job_ledger.succeed(engine, held.run_id, held.token, 0, {})
    claim(engine, plan("site", "zrh", job="other"))
    all_of_them = [("global", "global"), ("site", "ams"), ("site", "fra"), ("target", "7")]
    assert job_lookup.scopes(engine, "tidy", 10) == all_of_them
    assert job_lookup.scopes(engine, "tidy", 2) == all_of_them[:2]
    assert job_lookup.scopes(engine, "unknown", 2) == []
