"""The overview as types, schema `poller.overview/1`. `overview_json` makes the values."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, Field

from poller.presentation.cluster.sinks_json import SinkSummary
from poller.presentation.event_json import EventItem

Time = Annotated[str, Field(json_schema_extra={"format": "date-time"})]


class OverviewHealth(BaseModel):
    """One judgement of the whole, the same as that of `poller status`."""

    state: str
    level: str = Field(description="ok, attention or down.")
    text: str
    reasons: list[str]
    ready: bool = Field(description="Whether Redis and the database can be used.")


class OverviewTargets(BaseModel):
    """Targets on the board, by state."""

    total: int
    states: dict[str, int]


class OverviewBoard(BaseModel):
    """Targets by place."""

    due: int
    overdue: int
    long_overdue: int
    in_flight: int
    not_started: int
    parked: int
    held: int


class OverviewAlerts(BaseModel):
    """The open alerts; those that something covers are counted apart."""

    firing: int
    pending: int
    suppressed: int
    by_severity: dict[str, int]


class OverviewBreakers(BaseModel):
    open: int
    opened_by_hand: int


class OverviewLateness(BaseModel):
    """Start minus plan."""

    polls: int
    p50_s: float | None
    p99_s: float | None
    max_s: float | None


class OverviewPoint(BaseModel):
    """The polls of some seconds."""

    at: Time
    duration_s: float
    polls: int
    failed: int
    lateness_p99_s: float | None


class UnservedQueue(BaseModel):
    """A queue that no running worker serves."""

    name: str
    targets: int
    reason: str


class OverviewQueue(BaseModel):
    """One queue: need and capacity."""

    name: str
    targets_due: int
    targets_overdue: int
    batches_waiting: int
    needed_per_second: float
    done_per_second: float
    workers: int
    times_the_workers_needed: float | None


class OverviewLeader(BaseModel):
    name: str
    epoch: int
    since: Time


class OverviewWorker(BaseModel):
    name: str
    instance: str
    seen: Time
    started: Time
    polls: int
    last_poll: Time | None
    in_flight: int
    slots: int
    lent: int
    rate_limit: str
    store_error: str
    memory_bytes: int
    tags: dict[str, str]
    collectors: dict[str, str]
    queues: list[str]


class OverviewError(BaseModel):
    """One of the last failures."""

    at: Time
    target_id: int
    device: str
    target: str
    code: str
    message: str


class OverviewJobs(BaseModel):
    """Jobs by state, and those in trouble as `/api/v1/jobs` has them."""

    total: int
    states: dict[str, int]
    troubled: list[dict[str, Any]]


class OverviewDocument(BaseModel):
    """Whether the fleet is polled, and on time."""

    document_schema: str = Field(alias="schema")
    as_of: Time
    health: OverviewHealth
    targets: OverviewTargets
    board: OverviewBoard
    alerts: OverviewAlerts | None = Field(description="Null while SQL cannot be read.")
    breakers: OverviewBreakers
    dead_letters: dict[str, int] = Field(description="By reason.")
    polls_per_second: float
    outcomes_last_5_min: dict[str, int]
    lateness_last_5_min: OverviewLateness
    recent: list[OverviewPoint] = Field(description="Up to 15 minutes, the oldest first.")
    unserved: list[UnservedQueue]
    queues: list[OverviewQueue]
    leader: OverviewLeader | None
    standbys: int
    workers: list[OverviewWorker]
    errors: list[OverviewError]
    events: list[EventItem]
    totals: dict[str, int] = Field(description="Counters since the board was made.")
    jobs: OverviewJobs
    sinks: dict[str, SinkSummary] = Field(description="Of the running workers, by name.")
