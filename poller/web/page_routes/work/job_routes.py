"""The pages of jobs. Their forms are in job_forms.py, their JSON in api/operations/jobs_api.py."""

from __future__ import annotations

from typing import Annotated

from fastapi import FastAPI, Query, Request
from fastapi.responses import HTMLResponse, Response
from starlette.concurrency import run_in_threadpool

from poller import errors
from poller.domain.jobs.job_run import GLOBAL, Plan
from poller.service.job_actions import StartedRun
from poller.service.job_listing import RunsQuery
from poller.web import error_responses
from poller.web.api.contract.needs import READ_PAGE
from poller.web.api.contract.target_ids import LARGEST_ID
from poller.web.backend_queries import BackendQueries
from poller.web.pages.frame.html import PageRenderer
from poller.web.pages.frame.page_frame import RequestedFrame
from poller.web.pages.work import job_activity, job_page, jobs_page
from poller.web.pages.work.job_page import JobView
from poller.web.pages.work.jobs_page import JobsView

Word = Annotated[str, Query(max_length=200)]
Words = Annotated[list[str] | None, Query(max_length=jobs_page.FEW)]
Number = Annotated[int, Query(ge=0, le=LARGEST_ID)]


def add(app: FastAPI, backend: BackendQueries, page: PageRenderer) -> None:
    """Add the pages of jobs."""

    @app.get("/jobs", response_class=HTMLResponse, dependencies=[READ_PAGE])
    async def show_jobs(
        request: Request,
        frame: RequestedFrame,
        did: Word = "",
        job: Words = None,
        number: Number = 0,
        others: Number = 0,
    ) -> Response:
        """The page of all jobs; after a pause or resume it says what was done."""
        told = jobs_page.told(did, job or (), number, others)

        def read() -> JobsView:
            ticks = backend.job_runs(RunsQuery(limit=job_activity.TICKS))
            return jobs_page.build_view(backend.jobs(), ticks.runs, told)

        try:
            view = await run_in_threadpool(read)
        except errors.PollerError as error:
            return error_responses.for_page(error, request, page)
        return page.respond("work/jobs.html", frame, view=view)

    @app.get("/jobs/{name}", response_class=HTMLResponse, dependencies=[READ_PAGE])
    async def show_job(
        request: Request,
        frame: RequestedFrame,
        name: str,
        did: Word = "",
        plan: Number = 0,
        kind: Word = GLOBAL,
        scope: Word = GLOBAL,
        since: Number = 0,
    ) -> Response:
        """The page of one job; after a run by hand it shows how that goes on."""
        sent = Plan(name, kind, scope, plan) if did == "run" else None

        def read() -> JobView:
            shown = backend.job(name)
            run = None
            if sent is not None:
                started = StartedRun(shown.listed.job, sent, since)
                run = job_page.sent_run(started, backend.job_row(sent), shown.listed.as_of_ms)
            return job_page.build_view(shown, did, run)

        try:
            view = await run_in_threadpool(read)
        except errors.PollerError as error:
            return error_responses.for_page(error, request, page)
        return page.respond("work/job.html", frame, view=view)
