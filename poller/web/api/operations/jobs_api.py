"""`/api/v1/jobs` and `/api/v1/scheduler`: periodic work that is no poll, and the beats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Annotated

from fastapi import Body, Path, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from poller import errors
from poller.bootstrap import Services
from poller.domain.access.actor import Actor
from poller.domain.jobs.job_run import Status
from poller.presentation import formatting
from poller.service import bulk_confirmation, job_actions
from poller.service.job_actions import Change
from poller.service.job_listing import RunsQuery
from poller.web.api import jobs_json
from poller.web.api.contract import bulk_bodies, paging, problems, resources
from poller.web.api.contract.needs import Call, OperatingAll, ReadingAll
from poller.web.api.contract.paging import MOST_ITEMS, Cursor, Limit
from poller.web.api.contract.target_ids import LARGEST_ID
from poller.web.api.operations.job_bodies import (
    JobDetails,
    JobList,
    JobsChanged,
    JobsRequest,
    RunPage,
    RunRequest,
    SchedulerBody,
    SentBody,
)
from poller.web.backend_queries import BackendQueries

router = resources.router("jobs")
scheduler_router = resources.router("scheduler")

_TEXT = r"^[^\x00]*$"
JobName = Annotated[str, Path(max_length=200, pattern=_TEXT, description="The name of the job.")]
ScopePart = Annotated[str, Query(max_length=200, pattern=_TEXT)]
BeforeId = Annotated[
    int | None, Query(ge=1, le=LARGEST_ID, description="`next` of the page before.")
]

#: The event of a change is lost while Redis is away; the change itself is in SQL.
_NOT_ANNOUNCED = "the scheduler was not notified (Redis is not reachable); it reads it when it runs"


def _backend(request: Request) -> BackendQueries:
    found: BackendQueries = request.app.state.backend
    return found


@router.get("")
def list_jobs(
    call: ReadingAll,
    request: Request,
    response: Response,
    limit: Limit = MOST_ITEMS,
    cursor: Cursor = "",
) -> JobList:
    """List jobs with their states, by name."""
    key = paging.decode(cursor, str)
    document = jobs_json.jobs(_backend(request).jobs())
    items = sorted(document["items"], key=itemgetter("name"))  # a database may sort otherwise
    rest = [each for each in items if key is None or each["name"] > key[0]]
    last = [rest[limit - 1]["name"]] if len(rest) > limit else None
    following = paging.encode(last)
    paging.link_next(request, response, following)
    return JobList.model_validate({**document, "items": rest[:limit], "next": following})


@router.get("/{name}")
def show_job(call: ReadingAll, request: Request, name: JobName) -> JobDetails:
    """Show one job: its terms, next plans, scopes and last runs."""
    return JobDetails.model_validate(jobs_json.job(_backend(request).job(name)))


@router.get("/{name}/runs")
def list_runs(
    call: ReadingAll,
    request: Request,
    response: Response,
    name: JobName,
    status: Status | None = None,
    scope_kind: ScopePart = "",
    scope_id: ScopePart = "",
    limit: Limit = paging.DEFAULT_LIMIT,
    before_id: BeforeId = None,
) -> RunPage:
    """List the runs of a job, the newest first."""
    scope = jobs_json.scope(scope_kind, scope_id)
    query = RunsQuery(name, status, limit, before_id, scope)
    found = _backend(request).job_runs(query)
    if found.next_id is not None:
        following = request.url.include_query_params(before_id=found.next_id).query
        response.headers["Link"] = f'<?{following}>; rel="next"'
    return RunPage.model_validate(jobs_json.runs(found))


@router.post("/pause", responses=problems.CHANGING)
def pause_jobs(call: OperatingAll, wanted: JobsRequest) -> JobsChanged:
    """Pause jobs: no plan of theirs is started until they are resumed. Running ones go on."""
    return _switch(call, "pause", job_actions.pause, wanted)


@router.post("/resume", responses=problems.CHANGING)
def resume_jobs(call: OperatingAll, wanted: JobsRequest) -> JobsChanged:
    """Resume paused jobs. Plans of the pause follow as the job's catch-up says."""
    return _switch(call, "resume", job_actions.resume, wanted)


@router.post("/{name}/pause", responses=problems.CHANGING)
def pause_job(call: OperatingAll, name: JobName) -> JobsChanged:
    """Pause one job."""
    return _changed(call, [name], job_actions.pause(call.services, [name], call.actor))


@router.post("/{name}/resume", responses=problems.CHANGING)
def resume_job(call: OperatingAll, name: JobName) -> JobsChanged:
    """Resume one job."""
    return _changed(call, [name], job_actions.resume(call.services, [name], call.actor))


@router.post("/{name}/run", status_code=202, responses=problems.CHANGING)
def run_job(
    call: OperatingAll,
    response: Response,
    name: JobName,
    wanted: Annotated[RunRequest | None, Body()] = None,
) -> SentBody:
    """Run a job now, or one plan of it again. The runs of the job show how it goes on."""
    given = wanted or RunRequest()
    scope = jobs_json.scope(given.scope_kind, given.scope_id)
    plan_ms = None if given.plan is None else round(given.plan.timestamp() * 1000)
    started = job_actions.start(call.services, call.actor, name, scope, plan_ms)
    plan = started.plan
    response.headers["Location"] = f"{problems.PREFIX}/jobs/{plan.job}/runs"
    return SentBody(
        job=plan.job,
        plan=formatting.utc(plan.plan_ms),
        scope_kind=plan.scope_kind,
        scope_id=plan.scope_id,
        again=started.is_repair,
        paused_by=started.job.paused_by if started.job.paused_ms is not None else "",
        note=started.note,
    )


@router.delete("/{name}", status_code=204, responses=problems.CHANGING)
def forget_job(call: OperatingAll, name: JobName) -> None:
    """Forget a job that no worker has any more. Its runs stay until they are pruned."""
    job_actions.forget(call.services, call.actor, name)


@scheduler_router.get("")
async def show_scheduler(call: ReadingAll, request: Request) -> SchedulerBody:
    """Show the beats: which of them leads, and which fire jobs."""
    beats = await run_in_threadpool(_backend(request).beats)
    snapshot = await request.app.state.snapshots.get()
    if snapshot.overview is None or snapshot.error:
        raise errors.StoreUnavailable(snapshot.error or "the board cannot be read")
    return SchedulerBody.model_validate(jobs_json.scheduler(beats, snapshot.overview))


def _switch(
    call: Call,
    verb: str,
    change: Callable[[Services, Sequence[str], Actor], Change],
    wanted: JobsRequest,
) -> JobsChanged:
    """Pause or resume the named jobs, or all of them after a confirmation."""
    if (wanted.names is None) != wanted.all:
        raise errors.InvalidInput("names, all: send one of these", hint='{"names": ["prune"]}')
    every = job_actions.names(call.services) if wanted.names is None else wanted.names
    names = list(dict.fromkeys(every))
    if wanted.dry_run:
        return JobsChanged(**bulk_bodies.matched(names, dry_run=True))
    if wanted.all or wanted.confirm is not None:
        action = f"{verb} {formatting.counted(len(names), 'job')}"
        bulk_confirmation.refuse_unconfirmed(action, len(names), wanted.confirm)
    return _changed(call, names, change(call.services, names, call.actor))


def _changed(call: Call, names: Sequence[str], made: Change) -> JobsChanged:
    return JobsChanged(
        **bulk_bodies.matched(names, dry_run=False),
        changed=list(made.names),
        unchanged=len(names) - len(made.names),
        by=call.actor.name,
        note="" if made.is_announced else _NOT_ANNOUNCED,
    )
