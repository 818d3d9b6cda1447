"""The page of one job: a run that was asked for, commands, and refused forms."""

from __future__ import annotations

import web_jobs
from web_jobs import NOW_MS

from poller import errors
from poller.domain.jobs.job_run import JobRun, Plan
from poller.service.job_actions import StartedRun
from poller.web.pages.work import job_page, jobs_page

PLAN = Plan("prune", "site", "ams", NOW_MS)


def sent(row: JobRun | None) -> job_page.SentRun:
    started = StartedRun(web_jobs.job("prune"), PLAN, NOW_MS - 60_000)
    return job_page.sent_run(started, row, NOW_MS)


def test_a_run_by_hand_is_followed_to_its_end() -> None:
    """Sent, running, ended: and a row of an attempt before the request is none."""
    before = web_jobs.failed("prune", started_ms=NOW_MS - 60_001)
    for row in (None, before):
        waiting = sent(row)
        assert (waiting.state, waiting.is_over) == ("sent; no worker has started it yet", False)
        assert waiting.text == "Run of 2026-11-17T00:13:12Z for site:ams"
    going = sent(web_jobs.running("prune"))
    assert (going.state, going.is_over) == ("w1@a runs it, for 40 s", False)
    done = sent(web_jobs.run("prune", started_ms=NOW_MS))
    assert (done.tone, done.state, done.is_over) == ("ok", "success after 1.5 s: rows=1204", True)
    failed = sent(web_jobs.failed("prune", started_ms=NOW_MS))
    assert (failed.tone, failed.is_over) == ("failing", True)
    assert "no route" in failed.state


def test_the_command_of_a_plan_names_the_plan_to_the_millisecond() -> None:
    """A scope is quoted; the whole cluster needs none."""
    odd = Plan("prune", "site", "a b", NOW_MS + 5)
    assert job_page.repeat_command(odd) == (
        "poller jobs run prune --plan 2026-11-17T00:13:12.005Z --scope 'site:a b'"
    )
    plain = Plan("prune", "global", "global", NOW_MS)
    assert job_page.repeat_command(plain) == "poller jobs run prune --plan 2026-11-17T00:13:12Z"


def test_a_refused_run_keeps_its_texts_beside_the_error() -> None:
    """The page then stays as it is; else it reads itself again."""
    error = errors.InvalidInput('plan: "soon" is no time', hint="write ...", field="plan")
    texts = {"scope": "site:ams", "plan": "soon"}
    view = job_page.build_view(web_jobs.shown("broken"), refused=(texts, error))
    assert (view.form.scope.text, view.form.plan.text) == ("site:ams", "soon")
    assert (view.form.plan.error, view.form.scope.error) == ('plan: "soon" is no time.', "")
    assert (view.form.hint, view.live_s) == ("write ...", 0)
    assert job_page.build_view(web_jobs.shown("broken")).live_s == 5
    waiting = job_page.build_view(web_jobs.shown("broken"), "run", sent(None))
    assert waiting.live_s == 2
    assert [row.may_repeat for row in waiting.runs] == [True, False]


def test_what_was_done_is_told_with_the_way_back() -> None:
    """A few jobs by name; of many only the number; an unknown word tells nothing."""
    one = jobs_page.told("pause", ["prune"], 1, 0)
    assert one == jobs_page.Told("prune was paused.", "poller jobs resume prune")
    many = jobs_page.told("resume", [str(n) for n in range(5)], 12, 1)
    assert many == jobs_page.Told("12 jobs were resumed. 1 job was resumed before.", "")
    none = jobs_page.told("pause", [], 0, 2)
    assert none == jobs_page.Told("0 jobs were paused. 2 jobs were paused before.", "")
    assert jobs_page.told("explode", ["prune"], 1, 0) is None


def test_a_run_by_hand_is_offered_where_it_can_start() -> None:
    """Not while the lease is held, nor without a worker that has the job."""
    offered = {each.name: jobs_page.row_of(each).may_run for each in web_jobs.LISTED.jobs}
    assert not offered["absent"]
    assert not offered["busy"]
    assert offered["broken"]
    assert offered["rested"]
