"""The API of jobs on real stores: what is changed, and by whom; the same by command."""

from __future__ import annotations

import pytest

from poller.bootstrap import Services
from poller.cli import main
from poller.db import database_clock
from poller.db.access import audit_rows
from poller.db.access.audit_rows import AuditQuery, AuditRow
from poller.db.jobs import job_catalog, job_ledger
from poller.domain.jobs.job_run import FailureCode, Plan
from poller.domain.jobs.job_schedule import Cadence
from poller.domain.jobs.job_terms import JobTerms
from poller.domain.record.event_kinds import Kind
from poller.domain.record.overview import Worker
from poller.presentation import formatting
from poller.service import command_actor
from poller.state.cluster import event_stream, worker_registry
from tests.integration import api_clients

MINUTE_MS = 60_000
SWEEP = JobTerms("sweep", Cadence(MINUTE_MS), retry_delays_s=(30.0,))
TIDY = JobTerms("tidy", Cadence(MINUTE_MS))
API = "/api/v1/jobs"


@pytest.fixture
def api(services: Services) -> api_clients.TestClient:
    """A client, with two jobs of one package in the catalogue."""
    job_catalog.announce(services.engine, "job.acme", "acme 1.2", [SWEEP, TIDY])
    return api_clients.client(services)


@pytest.fixture
def worker(services: Services) -> None:
    """A living worker that has the package."""
    has_jobs = Worker("w1@a", 0, 1, 0, 0, 2**20, queues=["job.acme"])
    worker_registry.announce(services.redis, services.keys, has_jobs)


def audited(services: Services) -> list[AuditRow]:
    """The audit rows, the oldest first."""
    return audit_rows.listing(services.engine, AuditQuery())[::-1]


def facts(services: Services) -> list[tuple[str, str, str]]:
    return [(row.actor, row.action, row.subject) for row in audited(services)]


def test_a_job_is_paused_and_resumed(services: Services, api: api_clients.TestClient) -> None:
    """Event and audit row name the actor; the second pause changes nothing."""
    assert api.post(f"{API}/sweep/pause").json()["changed"] == ["sweep"]
    again = api.post(f"{API}/sweep/pause").json()
    assert (again["changed"], again["unchanged"]) == ([], 1)
    assert api.get(f"{API}/sweep").json()["paused_by"] == "ci"
    assert api.post(f"{API}/sweep/resume").json()["changed"] == ["sweep"]
    assert facts(services) == [("ci", "job.pause", "sweep"), ("ci", "job.resume", "sweep")]
    found = event_stream.newest(services.redis, services.keys, 10)
    told = [each.event.message for each in found if each.event and each.event.kind in _PAUSES]
    assert told == ["job sweep was resumed by ci", "job sweep was paused by ci"]


_PAUSES = (Kind.JOB_PAUSED, Kind.JOB_RESUMED)


def test_all_jobs_are_paused_by_their_number(
    services: Services, api: api_clients.TestClient
) -> None:
    """A dry run counts them; another number is refused."""
    plan = api.post(f"{API}/pause", json={"all": True, "dry_run": True}).json()
    assert (plan["matches"], plan["samples"], plan["changed"]) == (2, ["sweep", "tidy"], [])
    refused = api.post(f"{API}/pause", json={"all": True})
    assert (refused.status_code, refused.json()["hint"]) == (409, "send confirm: 2")
    assert audited(services) == []
    done = api.post(f"{API}/pause", json={"all": True, "confirm": 2}).json()
    assert done["changed"] == ["sweep", "tidy"]
    assert api.post(f"{API}/resume", json={"names": ["tidy"]}).json()["changed"] == ["tidy"]
    unknown = api.post(f"{API}/pause", json={"names": ["tidy", "tydi"]})
    assert unknown.status_code == 404
    assert len(audited(services)) == 3


@pytest.mark.usefixtures("worker")
def test_a_job_is_run(services: Services, api: api_clients.TestClient) -> None:
    """202, with the address of its runs; the message is in the queue of its package."""
    response = api.post(f"{API}/sweep/run")
    body = response.json()
    assert (response.status_code, body["outcome"], body["again"]) == (202, "sent", False)
    assert response.headers["location"] == f"{API}/sweep/runs"
    assert services.redis.llen("job.acme") == 1
    assert facts(services) == [("ci", "job.run", "sweep")]


@pytest.mark.usefixtures("worker")
def test_a_failed_plan_is_run_again(services: Services, api: api_clients.TestClient) -> None:
    """The audit row has the plan, and that it is repeated."""
    now_ms = database_clock.now_ms(services.engine)
    plan = Plan("sweep", "global", "global", now_ms - now_ms % MINUTE_MS - MINUTE_MS)
    held = job_ledger.claim(services.engine, plan, SWEEP, "w1@a", plan.plan_ms)
    code = FailureCode.HANDLER_ERROR
    job_ledger.fail(services.engine, held.run_id, held.token, code, "boom", None)
    at = formatting.instant(plan.plan_ms)
    body = api.post(f"{API}/sweep/run", json={"plan": at}).json()
    assert (body["again"], body["plan"]) == (True, at)
    [row] = audited(services)
    assert (row.after["plan"], row.after["again"]) == (at, True)
    runs = api.get(f"{API}/sweep/runs").json()
    assert [each["outcome"] for each in runs["items"]] == ["failed"]


def test_a_job_that_no_worker_has_is_forgotten(
    services: Services, api: api_clients.TestClient
) -> None:
    """Without a worker it is not run; in use it is not forgotten."""
    assert api.post(f"{API}/tidy/run").status_code == 404
    has_jobs = Worker("w1@a", 0, 1, 0, 0, 2**20, queues=["job.acme"])
    worker_registry.announce(services.redis, services.keys, has_jobs)
    assert api.delete(f"{API}/tidy").status_code == 422
    services.redis.delete(services.keys.workers)
    assert api.delete(f"{API}/tidy").status_code == 204
    assert api.delete(f"{API}/tidy").status_code == 404
    assert facts(services) == [("ci", "job.forget", "tidy")]


@pytest.mark.usefixtures("api")
@pytest.mark.parametrize(
    ("command", "action"),
    [
        ("pause sweep", "job.pause"),
        ("forget sweep --yes", "job.forget"),
        ("run sweep --no-wait", "job.run"),
    ],
)
def test_a_command_leaves_the_audit_row_of_a_job(
    services: Services, command: str, action: str
) -> None:
    """The actor is the user of this host."""
    if action == "job.run":
        has_jobs = Worker("w1@a", 0, 1, 0, 0, 2**20, queues=["job.acme"])
        worker_registry.announce(services.redis, services.keys, has_jobs)
    assert main.run(["jobs", *command.split()]) == 0
    assert facts(services) == [(command_actor.operator_name(), action, "sweep")]
