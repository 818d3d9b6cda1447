"""Bodies of jobs and of their runs. The fields are those of `poller jobs list --json`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field

from poller.jobs.plugin_values import LONGEST_ID, LONGEST_KIND
from poller.web.api.contract.bulk_bodies import Confirm, DryRun, Matches

_FIRST = datetime(1970, 1, 1, tzinfo=UTC)
_LAST = datetime(9000, 1, 1, tzinfo=UTC)
_TEXT = r"^[^\x00]*$"


def _within_bounds(at: datetime) -> datetime:
    if not _FIRST <= at <= _LAST:
        raise ValueError("the instant is before 1970 or after 8999")
    return at


PlanTime = Annotated[
    AwareDatetime,
    AfterValidator(_within_bounds),
    Field(description="Repeat this failed plan, or run it if it was missed."),
]


class Holder(BaseModel):
    """A run that runs now."""

    scope_kind: str
    scope_id: str
    plan: datetime
    runner: str
    attempt: int
    max_attempts: int
    started: datetime
    running_seconds: float
    heartbeat_age_seconds: float


class JobBody(BaseModel):
    """One job: state, schedule, next plan, last run, and what runs now."""

    name: str
    state: str
    schedule: str
    next_plan: datetime | None
    last_plan: datetime | None
    last_scope_kind: str | None
    last_scope_id: str | None
    last_origin: str | None
    last_outcome: str | None
    last_attempt: int | None
    last_max_attempts: int | None
    last_runner: str | None
    last_started: datetime | None
    last_finished: datetime | None
    last_duration_seconds: float | None
    last_error_code: str | None
    last_message: str | None
    last_success: datetime | None
    failures_in_a_row: int
    next_retry: datetime | None
    held_back_until: datetime | None
    held_back: str
    running: list[Holder]
    running_count: int
    paused: datetime | None
    paused_by: str
    gone: datetime | None
    planning_fault: str
    package: str
    queue: str
    workers: int | None = Field(description="Living workers that have it; null: not known.")
    description: str


class BrokenJobBody(BaseModel):
    """A job that a worker has and cannot use."""

    name: str
    distribution: str
    reason: str
    hint: str
    state: str
    workers: list[str]


class JobList(BaseModel):
    """A page of jobs, by name, and those that cannot be used."""

    schema_: str = Field("poller.jobs/1", alias="schema")
    as_of: datetime
    items: list[JobBody]
    total: int
    broken: list[BrokenJobBody]
    next: str | None = Field(None, description="The cursor of the next page; null on the last.")


class RunBody(BaseModel):
    """One run of a job."""

    id: int
    job: str
    plan: datetime
    scope_kind: str
    scope_id: str
    origin: str
    outcome: str
    attempt: int
    max_attempts: int
    next_retry: datetime | None
    runner: str
    dispatched: datetime
    late_seconds: float | None
    started: datetime
    finished: datetime | None
    duration_seconds: float | None
    heartbeat_age_seconds: float | None
    rows: int | None
    result: dict[str, Any]
    error_code: str
    message: str


class RunPage(BaseModel):
    """Runs, the newest first."""

    schema_: str = Field("poller.jobs.history/1", alias="schema")
    as_of: datetime
    items: list[RunBody]
    next: int | None = Field(description="`before_id` of the next page; null on the last.")


class Terms(BaseModel):
    """The terms of a job, durations in seconds."""

    schedule: dict[str, Any]
    delay_seconds: float
    run_timeout_seconds: float
    heartbeat_seconds: float
    stale_timeout_seconds: float
    reentrant: bool
    max_attempts: int
    retry_delays_seconds: list[float]
    catch_up: str
    catch_up_window_seconds: float
    max_plans_per_tick: int
    overlap: bool


class NextPlan(BaseModel):
    """A plan, in UTC and in the local time of its schedule."""

    utc: datetime
    local: str


class ScopeBody(BaseModel):
    """A scope that ran."""

    scope_kind: str
    scope_id: str


class JobDetails(JobBody):
    """One job in full."""

    schema_: str = Field("poller.jobs.show/1", alias="schema")
    as_of: datetime
    worker_names: list[str] | None
    announced: datetime
    terms: Terms
    next_plans: list[NextPlan]
    scopes: list[ScopeBody]
    more_scopes: bool
    runs: list[RunBody]
    last_result: dict[str, Any]
    last_error: str


class RunRequest(BaseModel):
    """Which run of a job: now, or one plan again; of a job with scopes, for which of them."""

    model_config = ConfigDict(extra="forbid")

    scope_kind: str = Field("", max_length=LONGEST_KIND, pattern=_TEXT)
    scope_id: str = Field("", max_length=LONGEST_ID, pattern=_TEXT)
    plan: PlanTime | None = None


class SentBody(BaseModel):
    """A run that was sent to the workers. Its row is in the runs of the job."""

    job: str
    plan: datetime
    scope_kind: str
    scope_id: str
    outcome: str = "sent"
    again: bool = Field(description="The plan failed before, and is run once more.")
    paused_by: str = Field(description="The job is paused, and runs by hand only; else empty.")
    note: str = ""


class JobsRequest(BaseModel):
    """Which jobs to pause or resume: those named, or all."""

    model_config = ConfigDict(extra="forbid")

    names: (
        Annotated[
            list[Annotated[str, Field(max_length=200, pattern=_TEXT)]],
            Field(min_length=1, max_length=500),
        ]
        | None
    ) = None
    all: bool = False
    dry_run: DryRun = False
    confirm: Confirm = None


class JobsChanged(Matches):
    """The jobs that were changed; the others were so before."""

    changed: list[str] = Field(default_factory=list)
    unchanged: int = 0
    by: str = ""


class BeatBody(BaseModel):
    """A living beat."""

    instance_id: str
    process: str
    registered_tasks: int
    leader_election_enabled: bool
    is_leader: bool
    will_execute_tasks: bool
    seen: datetime


class SchedulerBody(BaseModel):
    """The beats: which of them leads, and which fire jobs."""

    schema_: str = Field("poller.scheduler/1", alias="schema")
    as_of: datetime
    leader: str | None
    epoch: int | None
    instances: list[BeatBody]
