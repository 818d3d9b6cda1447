"""The routes of jobs and of the scheduler: pages, and JSON below `/api/v1`."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import FastAPI, Query, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from starlette.concurrency import run_in_threadpool

from poller import errors
from poller.domain.jobs.job_run import Status
from poller.service.job_listing import RunsQuery
from poller.web import error_responses
from poller.web.api import jobs_json
from poller.web.api.contract.needs import READ_PAGE
from poller.web.api.snapshot import Snapshots
from poller.web.backend_queries import BackendQueries
from poller.web.pages import jobs_page
from poller.web.pages.html import PageRenderer
from poller.web.pages.themes import RequestedTheme, store_theme

#: Runs of one response.
MAXIMUM_RUNS = 500


def add(app: FastAPI, backend: BackendQueries, page: PageRenderer, snapshots: Snapshots) -> None:
    """Add the routes of jobs."""
    _add_pages(app, backend, page)
    _add_documents(app, backend)
    _add_scheduler(app, backend, snapshots)


def _add_pages(app: FastAPI, backend: BackendQueries, page: PageRenderer) -> None:
    @app.get("/jobs", response_class=HTMLResponse, dependencies=[READ_PAGE])
    async def show_jobs(request: Request, theme: RequestedTheme) -> Response:
        """The page of all jobs."""
        try:
            jobs = await run_in_threadpool(backend.jobs)
        except errors.PollerError as error:
            return error_responses.for_page(error, request, page)
        html = page.jobs(jobs_page.build_view(jobs), theme.theme)
        return store_theme(theme, HTMLResponse(html))

    @app.get("/jobs/{name}", response_class=HTMLResponse, dependencies=[READ_PAGE])
    async def show_job(request: Request, name: str, theme: RequestedTheme) -> Response:
        """The page of one job."""
        try:
            shown = await run_in_threadpool(backend.job, name)
        except errors.PollerError as error:
            return error_responses.for_page(error, request, page)
        html = page.job(jobs_page.build_job_view(shown), theme.theme)
        return store_theme(theme, HTMLResponse(html))


def _add_documents(app: FastAPI, backend: BackendQueries) -> None:
    @app.get("/api/v1/jobs", dependencies=[READ_PAGE])
    async def list_jobs() -> JSONResponse:
        """All jobs with their states."""
        try:
            jobs = await run_in_threadpool(backend.jobs)
        except errors.PollerError as error:
            return _refusal(error)
        return JSONResponse(jobs_json.jobs(jobs))

    @app.get("/api/v1/jobs/{name}", dependencies=[READ_PAGE])
    async def one_job(name: str) -> JSONResponse:
        """One job: its terms, next plans, scopes and last runs."""
        try:
            shown = await run_in_threadpool(backend.job, name)
        except errors.PollerError as error:
            return _refusal(error)
        return JSONResponse(jobs_json.job(shown))

    @app.get("/api/v1/jobs/{name}/runs", dependencies=[READ_PAGE])
    async def runs_of_job(
        name: str,
        status: Status | None = None,
        scope_kind: str = "",
        scope_id: str = "",
        limit: Annotated[int, Query(ge=1, le=MAXIMUM_RUNS)] = 50,
        before_id: Annotated[int | None, Query(ge=1)] = None,
    ) -> JSONResponse:
        """The runs of a job, the newest first. `next` of a full page is the next `before_id`."""
        try:
            scope = jobs_json.scope(scope_kind, scope_id)
            query = RunsQuery(name, status, limit, before_id, scope)
            found = await run_in_threadpool(backend.job_runs, query)
        except errors.PollerError as error:
            return _refusal(error)
        return JSONResponse(jobs_json.runs(found))


def _add_scheduler(app: FastAPI, backend: BackendQueries, snapshots: Snapshots) -> None:
    @app.get("/api/v1/scheduler", dependencies=[READ_PAGE])
    async def scheduler() -> JSONResponse:
        """The beats: which of them leads, and which fire jobs."""
        try:
            beats = await run_in_threadpool(backend.beats)
        except errors.PollerError as error:
            return _refusal(error)
        snapshot = await snapshots.get()
        if snapshot.overview is None or snapshot.error:
            return JSONResponse({"error": {"message": snapshot.error}}, status_code=503)
        return JSONResponse(jobs_json.scheduler(beats, snapshot.overview))


def _refusal(error: errors.PollerError) -> JSONResponse:
    """The response to a request that failed: what was wrong, why, and what to do."""
    body: dict[str, Any] = {"code": error.code, "message": str(error)}
    if error.cause:
        body["cause"] = error.cause
    if error.hint:
        body["try"] = error.hint
    return JSONResponse({"error": body}, status_code=error_responses.status(error))
