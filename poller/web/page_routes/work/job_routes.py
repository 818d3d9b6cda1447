"""The pages of jobs. Their JSON is in web/api/operations/jobs_api.py."""

from __future__ import annotations

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, Response
from starlette.concurrency import run_in_threadpool

from poller import errors
from poller.web import error_responses
from poller.web.api.contract.needs import READ_PAGE
from poller.web.backend_queries import BackendQueries
from poller.web.pages.frame.html import PageRenderer
from poller.web.pages.frame.page_frame import RequestedFrame
from poller.web.pages.work import jobs_page


def add(app: FastAPI, backend: BackendQueries, page: PageRenderer) -> None:
    """Add the pages of jobs."""

    @app.get("/jobs", response_class=HTMLResponse, dependencies=[READ_PAGE])
    async def show_jobs(request: Request, frame: RequestedFrame) -> Response:
        """The page of all jobs."""
        try:
            jobs = await run_in_threadpool(backend.jobs)
        except errors.PollerError as error:
            return error_responses.for_page(error, request, page)
        return page.respond("work/jobs.html", frame, view=jobs_page.build_view(jobs))

    @app.get("/jobs/{name}", response_class=HTMLResponse, dependencies=[READ_PAGE])
    async def show_job(request: Request, name: str, frame: RequestedFrame) -> Response:
        """The page of one job."""
        try:
            shown = await run_in_threadpool(backend.job, name)
        except errors.PollerError as error:
            return error_responses.for_page(error, request, page)
        return page.respond("work/job.html", frame, view=jobs_page.build_job_view(shown))
