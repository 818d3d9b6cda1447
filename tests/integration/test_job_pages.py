"""The pages of jobs on real stores: run, pause, resume, forget, and who may do what."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest

from poller.bootstrap import Services
from poller.db import database_clock
from poller.db.access import audit_rows
from poller.db.access.audit_rows import AuditQuery
from poller.db.inventory import imports
from poller.db.jobs import job_catalog, job_ledger
from poller.domain.access.scopes import Role, Scope
from poller.domain.jobs.job_run import FailureCode, Plan
from poller.domain.jobs.job_schedule import Cadence
from poller.domain.jobs.job_terms import JobTerms
from poller.domain.record.overview import Worker
from poller.presentation import formatting
from poller.state.cluster import worker_registry
from tests.integration import test_target_pages
from tests.integration.access_sites import BROWSER, Site, form_token, log_in

MINUTE_MS = 60_000
SWEEP = JobTerms("sweep", Cadence(MINUTE_MS), retry_delays_s=(30.0,))
TIDY = JobTerms("tidy", Cadence(MINUTE_MS))
SITED = JobTerms("sited", Cadence(MINUTE_MS), names_scopes=True)


@pytest.fixture
def site(services: Services) -> Site:
    """Three jobs of one package, which one worker has."""
    job_catalog.announce(services.engine, "job.acme", "acme 1.2", [SWEEP, TIDY, SITED])
    has_jobs = Worker("w1@a", 0, 1, 0, 0, 2**20, queues=["job.acme"])
    worker_registry.announce(services.redis, services.keys, has_jobs)
    return Site(services)


@pytest.fixture
def browser(site: Site) -> Any:
    return site.client(**BROWSER)


def act(browser: Any, path: str, action: str, **fields: Any) -> Any:
    page = browser.get("/jobs").text
    form = {"csrf_token": form_token(page), "action": action, **fields}
    return browser.post(f"/jobs/{path}/act", data=form)


def followed(browser: Any, answer: Any, base: str) -> str:
    """The page that a redirect leads to, as a browser resolves it."""
    assert answer.status_code == 303
    found = browser.get(str(browser.base_url.join(base).join(answer.headers["location"])))
    assert found.status_code == 200
    return html.unescape(str(found.text))


def changes(site: Site) -> list[tuple[str, str]]:
    rows = audit_rows.listing(site.services.engine, AuditQuery())[::-1]
    return [(row.action, row.subject) for row in rows if row.action.startswith("job.")]


def table(page: str, name: str) -> str:
    return page.partition(f'data-table="{name}"')[2].partition("</table>")[0]


def failed_plan(site: Site) -> Plan:
    """A plan of the job sweep that failed for good."""
    engine = site.services.engine
    now_ms = database_clock.now_ms(engine)
    plan = Plan("sweep", "global", "global", now_ms - now_ms % MINUTE_MS - MINUTE_MS)
    held = job_ledger.claim(engine, plan, SWEEP, "w1@a", plan.plan_ms)
    code = FailureCode.HANDLER_ERROR
    job_ledger.fail(engine, held.run_id, held.token, code, "boom", None)
    return plan


def test_a_job_is_run_and_its_page_follows_the_run(site: Site, browser: Any) -> None:
    """The message is in the queue of its package, and the page says what comes of it."""
    answer = act(browser, "sweep", "run")
    page = followed(browser, answer, "/jobs/sweep/act")
    assert "sent; no worker has started it yet" in page
    assert 'data-live="2"' in page
    assert site.services.redis.llen("job.acme") == 1
    assert changes(site) == [("job.run", "sweep")]
    plan_ms = int(re.search(r"plan=(\d+)", answer.headers["location"])[1])
    plan = Plan("sweep", "global", "global", plan_ms)
    engine = site.services.engine
    held = job_ledger.claim(engine, plan, SWEEP, "w1@a", plan_ms)
    address = str(answer.headers["location"]).removeprefix("../")
    assert "w1@a runs it, for" in browser.get(f"/jobs/{address}").text
    site.app.state.backend.expire_jobs()  # the list is read every two seconds
    listed = browser.get("/jobs").text
    assert "w1@a" in table(listed, "running")
    assert "Run now" not in table(listed, "jobs").partition(">sited<")[0]
    held_again = act(browser, "sweep", "run")
    assert held_again.status_code == 409
    assert "is running for global; nothing was sent" in held_again.text
    job_ledger.fail(engine, held.run_id, held.token, FailureCode.HANDLER_ERROR, "boom", None)
    assert "handler_error: boom" in browser.get(f"/jobs/{address}").text


def test_a_failed_plan_is_run_again_by_its_button(site: Site, browser: Any) -> None:
    """The form sends the plan; the command beside it does the same."""
    plan = failed_plan(site)
    at = formatting.instant(plan.plan_ms)
    page = browser.get("/jobs/sweep").text
    assert f'name="plan" value="{at}"' in page
    assert f"poller jobs run sweep --plan {at}" in page
    assert "handler_error: boom" in table(browser.get("/jobs").text, "ticks")
    told = followed(browser, act(browser, "sweep", "run", plan=at), "/jobs/sweep/act")
    assert f"Run of {at}" in told
    rows = audit_rows.listing(site.services.engine, AuditQuery())
    assert rows[0].after == {"scope": "global", "plan": at, "again": True}


@pytest.mark.parametrize(
    ("job", "fields", "reason"),
    [
        ("sited", {}, "runs for each of its scopes; name one of them"),
        ("sited", {"scope": "ams"}, 'scope: "ams" is no scope'),
        ("sweep", {"scope": "site:ams"}, 'job "sweep" has no scopes'),
        ("sweep", {"plan": "soon"}, 'plan: "soon" is no time'),
        ("sweep", {"plan": "2999-01-01T00:00:00Z"}, "is in the future"),
    ],
)
def test_a_refused_run_keeps_what_was_typed(
    site: Site, browser: Any, job: str, fields: dict[str, str], reason: str
) -> None:
    """On the page of the job, beside its field; nothing is sent."""
    refused = act(browser, job, "run", **fields)
    page = html.unescape(refused.text)
    assert refused.status_code == 422
    assert reason in page
    assert "Nothing was changed." in page
    for text in fields.values():
        assert f'value="{text}"' in page
    assert 'aria-invalid="true"' in page
    assert site.services.redis.llen("job.acme") == 0
    assert changes(site) == []


def test_a_job_with_scopes_is_run_for_one(site: Site, browser: Any) -> None:
    """The list leads to its form instead of a button."""
    assert 'href="jobs/sited#run"' in browser.get("/jobs").text
    page = followed(browser, act(browser, "sited", "run", scope="site:ams"), "/jobs/sited/act")
    assert "for site:ams" in page


def test_a_job_without_a_worker_is_not_run(site: Site, browser: Any) -> None:
    """The reason is that of the command; its button is not shown."""
    site.services.redis.delete(site.services.keys.workers)
    refused = act(browser, "tidy", "run")
    assert refused.status_code == 404
    assert "No running worker has job" in refused.text
    assert "No worker runs" in refused.text
    assert "no running worker has it" in browser.get("/jobs/tidy").text


def test_a_job_is_paused_and_resumed(site: Site, browser: Any) -> None:
    """On its own page; the second pause changes nothing."""
    page = followed(browser, act(browser, "tidy", "pause"), "/jobs/tidy/act")
    assert "Paused: no plan is started until it is resumed." in page
    assert "poller jobs resume tidy" in page
    again = followed(browser, act(browser, "tidy", "pause"), "/jobs/tidy/act")
    assert "Nothing was changed: it was so before." in again
    assert "Resumed:" in followed(browser, act(browser, "tidy", "resume"), "/jobs/tidy/act")
    assert changes(site) == [("job.pause", "tidy"), ("job.resume", "tidy")]


def test_marked_jobs_are_paused_together(site: Site, browser: Any) -> None:
    """The list says which, and the command that takes it back."""
    page = followed(browser, act(browser, "-", "pause", job=["tidy", "sweep"]), "/jobs/-/act")
    assert table(page, "jobs").count("○ paused") == 2
    assert "2 jobs were paused." in page
    assert "poller jobs resume tidy sweep" in page
    back = followed(browser, act(browser, "-", "resume", job=["tidy", "sited"]), "/jobs/-/act")
    assert "tidy was resumed. 1 job was resumed before." in back
    assert [name for _, name in changes(site)] == ["tidy", "sweep", "tidy"]
    assert act(browser, "-", "pause").status_code == 422
    assert act(browser, "-", "pause", job=["tydi"]).status_code == 404
    assert act(browser, "-", "explode", job=["tidy"]).status_code == 422
    assert act(browser, "tidy", "explode").status_code == 422


def test_a_job_that_no_package_has_is_forgotten(site: Site, browser: Any) -> None:
    """One that a worker has is not."""
    assert act(browser, "tidy", "forget").status_code == 422
    job_catalog.announce(site.services.engine, "job.acme", "acme 1.3", [SWEEP, SITED])
    assert 'value="forget"' in browser.get("/jobs/tidy").text
    page = followed(browser, act(browser, "tidy", "forget"), "/jobs/tidy/act")
    assert "tidy: removed from the list." in page
    assert browser.get("/jobs/tidy").status_code == 404


@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR])
def test_only_what_one_may_do_is_shown(site: Site, role: Role) -> None:
    """And the server refuses the rest."""
    site.user(role=role)
    browser = site.client(**BROWSER)
    log_in(browser)
    may = role is Role.OPERATOR
    for path in ("/jobs", "/jobs/tidy"):
        assert ('name="action"' in browser.get(path).text) is may
    for path, fields in (("tidy", {}), ("-", {"job": ["tidy"]})):
        answer = act(browser, path, "pause", **fields)
        assert answer.status_code == (303 if may else 403)
    assert changes(site) == ([("job.pause", "tidy")] if may else [])


def test_a_form_of_another_site_changes_nothing(site: Site) -> None:
    """Without the token of the page; a token of one site may not open jobs at all."""
    site.user()
    browser = site.client(**BROWSER)
    log_in(browser)
    forged = browser.post("/jobs/tidy/act", data={"action": "pause", "csrf_token": "0" * 64})
    assert forged.status_code == 403
    imports.apply_import(site.services.engine, [test_target_pages.row(3)])
    token = site.token(Scope.READ, Scope.OPERATE, site="fra")
    limited = site.client(**token, accept="text/html")
    assert limited.get("/jobs").status_code == 403
    assert changes(site) == []
