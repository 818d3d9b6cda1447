"""The metrics of jobs, from a real database and a real Redis."""

from __future__ import annotations

import time

import pytest

from poller import errors
from poller.bootstrap import Services
from poller.db.jobs import job_catalog, job_ledger
from poller.domain.jobs.job_health import JobState
from poller.domain.jobs.job_run import FailureCode, Plan
from poller.domain.jobs.job_schedule import Cadence
from poller.domain.jobs.job_terms import JobTerms
from poller.domain.jobs.run_totals import RunOutcome
from poller.state.cluster import job_totals
from poller.web import web_process
from poller.web.api.job_metrics import JobReading

HOUR_MS = 3_600_000


def terms(name: str, stale_timeout_s: float = 60.0) -> JobTerms:
    return JobTerms(
        name, Cadence(HOUR_MS), heartbeat_s=stale_timeout_s / 2, stale_timeout_s=stale_timeout_s
    )


def readings(services: Services) -> dict[str, JobReading]:
    return {job.name: job for job in web_process.backend_queries(services).job_readings()}


def test_jobs_are_read_with_their_state_and_counters(services: Services) -> None:
    """State and age come from the ledger, counters from Redis; a job that is gone is left out."""
    engine = services.engine
    known = [terms("good"), terms("bad"), terms("busy", stale_timeout_s=0.01), terms("gone")]
    job_catalog.announce(engine, "job.acme", "acme 1.0", known)
    for name in ("good", "bad", "busy"):
        claim = job_ledger.claim(
            engine, Plan(name, "global", "global", 0), terms(name, 0.01), "w", 0
        )
        if name == "good":
            assert job_ledger.succeed(engine, claim.run_id, claim.token, 3, {})
        elif name == "bad":
            code = FailureCode.HANDLER_ERROR
            assert job_ledger.fail(engine, claim.run_id, claim.token, code, "no", None)
    job_totals.record_run(services.redis, services.keys, "good", RunOutcome.SUCCESS, 0.2)
    job_totals.record_run(services.redis, services.keys, "gone", RunOutcome.SUCCESS, 0.2)
    job_catalog.announce(engine, "job.acme", "acme 1.1", known[:3])

    time.sleep(0.02)  # the lease of busy is over
    found = readings(services)
    assert set(found) == {"good", "bad", "busy"}
    assert found["good"].last_success_age_s is not None
    assert 0 <= found["good"].last_success_age_s < 60
    assert found["good"].totals.outcomes == {RunOutcome.SUCCESS: 1}
    assert found["bad"].last_success_age_s is None
    assert found["bad"].totals.outcomes == {}
    assert (found["bad"].running, found["busy"].running) == (0, 1)
    assert (found["busy"].past_lease, found["good"].past_lease) == (1, 0)
    assert [found[name].state for name in ("good", "bad", "busy")] == [
        JobState.OK,
        JobState.FAILING,
        JobState.RUNNING,
    ]


def test_jobs_that_cannot_be_read_are_an_error(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> None:
        raise errors.StoreUnavailable("cannot use Redis")

    monkeypatch.setattr(job_totals, "read", away)
    with pytest.raises(errors.StoreUnavailable):
        readings(services)
