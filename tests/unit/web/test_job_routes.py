"""The routes of jobs and of the scheduler: documents, pages, paging, and errors."""

from __future__ import annotations

import dataclasses
import re

import pytest
import web_clients
import web_jobs
import web_overviews as fleet

from poller import errors
from poller.bootstrap import Services
from poller.cli.output import job_tables
from poller.domain.jobs.job_health import JobState
from poller.presentation import job_states
from poller.presentation.health import Stores
from poller.presentation.job_states import JobList
from poller.service.job_listing import RunsQuery, ShownJob
from poller.settings import Settings
from poller.state.cluster.beat_registry import BeatInstance


def client(**queries: object) -> web_clients.TestClient:
    defaults = {
        "jobs": lambda: web_jobs.LISTED,
        "job": web_jobs.shown,
        "job_runs": web_jobs.page,
    }
    return web_clients.create(Services(Settings()), **{**defaults, **queries})


def table(html: str, name: str) -> str:
    """The table of a page with this name, up to the end of the page."""
    return html.partition(f'data-table="{name}"')[2]


def test_the_api_lists_the_jobs() -> None:
    """In the schema of `poller jobs --json`, with instants in UTC."""
    body = client().get("/api/v1/jobs").json()
    assert (body["schema"], body["as_of"]) == ("poller.jobs/1", "2026-11-17T00:13:12Z")
    items = {item["name"]: item for item in body["items"]}
    assert items["broken"]["state"] == "failing"
    assert items["broken"]["last_message"] == "OSError: no route\nto the archive"
    assert items["rested"]["paused_by"] == "ada"


def test_a_job_that_a_worker_cannot_use_is_shown_with_the_reason() -> None:
    """In the document and on the page."""
    fault = {"distribution": "acme 1.0", "reason": "cron: <no>", "hint": "", "state": "invalid"}
    worker = dataclasses.replace(web_jobs.WORKERS[0], broken_jobs={"odd": fault})
    site = client(jobs=lambda: job_states.judge(web_jobs.STORED, [worker]))
    body = site.get("/api/v1/jobs").json()
    assert body["broken"] == [{"name": "odd", **fault, "workers": ["w1@a"]}]
    assert body["total"] == len(body["items"])
    html = site.get("/jobs").text
    for text in ("Cannot be used", "odd", "acme 1.0, w1@a", "invalid", "cron: &lt;no&gt;"):
        assert text in html, text
    assert "Cannot be used" not in client().get("/jobs").text


def test_the_api_shows_one_job() -> None:
    """With its terms, the next five plans, its scopes and last runs."""
    body = client().get("/api/v1/jobs/nightly").json()
    assert body["terms"]["schedule"] == {"cron": "0 2 * * *", "timezone": "Europe/Amsterdam"}
    assert [plan["utc"] for plan in body["next_plans"]][:2] == [
        "2026-11-17T01:00:00Z",
        "2026-11-18T01:00:00Z",
    ]
    assert body["next_plans"][0]["local"] == "2026-11-17 02:00:00+01:00"
    assert (len(body["next_plans"]), body["more_scopes"], len(body["runs"])) == (5, True, 2)


def test_runs_are_paged_by_a_cursor() -> None:
    """`next` of a page is `before_id` of the next one; the limit is bounded."""
    asked: list[RunsQuery] = []

    def page(query: RunsQuery) -> object:
        asked.append(query)
        return web_jobs.page(query)

    site = client(job_runs=page)
    first = site.get("/api/v1/jobs/prune/runs?limit=2").json()
    assert ([item["id"] for item in first["items"]], first["next"]) == ([999, 998], 998)
    second = site.get(f"/api/v1/jobs/prune/runs?limit=2&before_id={first['next']}").json()
    assert [item["id"] for item in second["items"]] == [997, 996]
    site.get("/api/v1/jobs/prune/runs?status=FAILED&scope_kind=site&scope_id=ams")
    assert (asked[-1].status, asked[-1].scope, asked[-1].limit) == ("FAILED", ("site", "ams"), 50)
    assert site.get("/api/v1/jobs/prune/runs?limit=501").status_code == 422
    assert site.get("/api/v1/jobs/prune/runs?status=LATE").status_code == 422
    one_sided = site.get("/api/v1/jobs/prune/runs?scope_kind=site")
    assert (one_sided.status_code, "scope_id" in one_sided.text) == (422, True)


@pytest.mark.parametrize("path", ["/api/v1/jobs/nightyl", "/api/v1/jobs/nightyl/runs"])
def test_an_unknown_job_is_not_found(path: str) -> None:
    """With the nearest name."""

    def refuse(_asked: object) -> ShownJob:
        raise errors.NotFound('no job named "nightyl"', hint="did you mean nightly?")

    response = client(job=refuse, job_runs=refuse).get(path)
    assert response.status_code == 404
    problem = response.json()
    assert (problem["code"], problem["detail"]) == ("P101", 'no job named "nightyl"')
    assert problem["hint"] == "did you mean nightly?"


def test_the_scheduler_has_its_instances() -> None:
    """Which beat leads, which fires jobs, and the epoch of the leader."""
    beats = [
        BeatInstance("beat-1:4711", True, True, 5, fleet.NOW_MS, process="beat-1:4711"),
        BeatInstance("beat-2:812", leads=False, election=True, jobs=5, seen_ms=fleet.NOW_MS),
        BeatInstance("alone", leads=False, election=False, jobs=0, seen_ms=fleet.NOW_MS),
    ]
    body = client(beats=lambda: beats).get("/api/v1/scheduler").json()
    assert (body["leader"], body["epoch"]) == ("beat-1:4711", 7)
    assert body["instances"][0] == {
        "instance_id": "beat-1:4711",
        "process": "beat-1:4711",
        "registered_tasks": 5,
        "leader_election_enabled": True,
        "is_leader": True,
        "will_execute_tasks": True,
        "seen": "2026-11-17T00:13:12Z",
    }
    assert [each["will_execute_tasks"] for each in body["instances"]] == [True, False, True]


def test_a_leader_that_was_killed_does_not_lead_in_the_answer() -> None:
    """Its entry stays for some seconds and says so, but it has lost the lock."""
    beats = [
        BeatInstance("killed:1", leads=True, election=True, jobs=5, seen_ms=fleet.NOW_MS),
        BeatInstance("beat-1:4711", leads=True, election=True, jobs=5, seen_ms=fleet.NOW_MS),
    ]
    body = client(beats=lambda: beats).get("/api/v1/scheduler").json()
    assert [each["is_leader"] for each in body["instances"]] == [False, True]
    assert [each["will_execute_tasks"] for each in body["instances"]] == [False, True]


def test_the_page_has_the_columns_of_the_command() -> None:
    """Jobs in trouble come first, each with its reason."""
    html = table(client().get("/jobs").text, "jobs")
    order = [html.index(f'href="jobs/{name}"') for name in ("broken", "late", "absent", "busy")]
    assert order == sorted(order)
    for text in (
        "■ failing",
        "handler_error: OSError: no route",
        "no running worker has acme-jobs 1.2",
        "w1@a, heartbeat 3 s ago and 1 more",
        "0 2 * * * Europe/Amsterdam",
        "by ada, 1 m 0 s ago",
        "2 of 3",
        "in 1 m 0 s",
    ):
        assert text in html, text


def test_the_page_of_one_job() -> None:
    """Its last error in full, its runs, terms and next plans."""
    html = client().get("/jobs/broken").text
    for text in (
        "handler_error: OSError: no route\nto the archive",
        "3 attempts, again after 1 m, 5 m<",
        "latest_only: of missed plans only the newest is run",
        "global, site:ams and more",
        "2026-11-17T00:15:00Z",
        "1,204",
        "{\n  &#34;rows&#34;: 1204\n}",
    ):
        assert text in html, text


def test_the_pages_have_the_titles_of_the_commands() -> None:
    """A page leaves out what it shows elsewhere: the holder beside the state, the job above."""
    for path, name, columns, elsewhere in (
        ("/jobs", "jobs", job_tables.JOBS, "HOLDER"),
        ("/jobs/prune", "runs", job_tables.RUNS, "JOB"),
    ):
        head = table(client().get(path).text, name).partition("</thead>")[0]
        titles = [
            title.removesuffix(" UTC").upper() for title in re.findall(r">([^<]+)</th>", head)
        ]
        titles = [title for title in titles if title != "ACT"]
        assert titles == [each.title for each in columns if each.title != elsewhere]


def test_the_page_has_the_last_result() -> None:
    """The details of the newest success in full, and on the lines of the runs."""
    result = {"devices": 42, "note": "<b>x</b> " + "long " * 100}
    ended = web_jobs.run("prune", result=result)
    shown = ShownJob(web_jobs.named("prune"), [ended], (), more_scopes=False)
    html = client(job=lambda _name: shown).get("/jobs/prune").text
    assert "Last result" in html
    assert "&#34;devices&#34;: 42" in html
    assert "devices=42 note=&#34;&lt;b&gt;x&lt;/b&gt; long" in html
    assert html.count("long ") > 100 + 50
    assert "<b>x" not in html


def test_a_job_that_cannot_be_planned_says_why() -> None:
    """Beside its state, on the list and on its own page."""
    fault = "scopes: no route to the inventory"
    unplanned = dataclasses.replace(
        web_jobs.named("late"),
        state=JobState.FAILING,
        job=web_jobs.job("late", planning_fault=fault),
    )
    pages = client(
        jobs=lambda: JobList(web_jobs.NOW_MS, [unplanned]),
        job=lambda _name: ShownJob(unplanned, (), (), more_scopes=False),
    )
    for address in ("/jobs", "/jobs/late"):
        assert f"it cannot be planned: {fault}" in pages.get(address).text
    assert pages.get("/api/v1/jobs").json()["items"][0]["planning_fault"] == fault


def test_texts_of_a_plugin_are_escaped() -> None:
    """The message of a handler cannot put a script into the page."""
    bad = "<script>alert(1)</script>"
    listed = web_jobs.named("broken")
    last = dataclasses.replace(web_jobs.failed("broken"), message=bad)
    summary = dataclasses.replace(listed.summary, last=last)
    hostile = dataclasses.replace(listed, summary=summary)
    pages = client(
        jobs=lambda: JobList(web_jobs.NOW_MS, [hostile]),
        job=lambda _name: ShownJob(hostile, [last], (), more_scopes=False),
    )
    for path in ("/jobs", "/jobs/broken"):
        html = pages.get(path).text
        assert bad not in html
        assert "&lt;script&gt;" in html


@pytest.mark.parametrize("path", ["/jobs", "/jobs/prune", "/api/v1/jobs", "/api/v1/jobs/prune"])
def test_an_error_of_sql_is_shown(path: str) -> None:
    """503, and the error."""

    def unavailable(*_: object) -> JobList:
        raise errors.StoreUnavailable("SQL does not answer")

    response = client(jobs=unavailable, job=unavailable).get(path)
    assert response.status_code == 503
    assert "SQL does not answer" in response.text


def test_the_list_of_jobs_has_pages() -> None:
    """The pages together have each job once, by name."""
    site = client()
    names = sorted(each.name for each in web_jobs.LISTED.jobs)
    found: list[str] = []
    cursor = ""
    for _ in range(len(names)):
        page = site.get("/api/v1/jobs", params={"limit": 3, "cursor": cursor}).json()
        found += [item["name"] for item in page["items"]]
        assert page["total"] == len(names)
        cursor = page["next"] or ""
        if not cursor:
            break
    assert found == names


def test_the_overview_links_to_the_jobs_and_names_those_in_trouble() -> None:
    """In its sentence, and in its JSON."""
    stores = Stores(jobs=web_jobs.LISTED.jobs)
    site = client(stores=lambda _overview, _error: stores)
    html = site.get("/").text
    assert 'href="jobs"' in html
    assert "Job broken fails. Job late is overdue." in html
    body = site.get("/api/overview").json()
    assert (body["jobs"]["total"], body["jobs"]["states"]["failing"]) == (7, 1)
    assert [each["name"] for each in body["jobs"]["troubled"]] == ["broken", "late", "absent"]


def test_no_job_is_not_an_error() -> None:
    """A cluster whose workers have not started has an empty page."""
    html = web_clients.create().get("/jobs").text
    assert "A worker announces its jobs when it starts" in html
