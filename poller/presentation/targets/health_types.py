"""The document of `/api/v1/scheduler/health`, schema `poller.scheduler.health/1`, as types.

Fields may be added, never changed. Instants are RFC 3339 in UTC, to the second; null for "never"
and "unknown". Lists and mappings are never null.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

from poller.presentation.cluster.sinks_json import SinkSummary

SCHEMA = "poller.scheduler.health/1"


class HealthVerdict(BaseModel):
    """One judgement of the whole, the same as that of `poller status`."""

    level: str = Field(description="ok, attention or down.")
    text: str
    reasons: list[str]


class HealthLeader(BaseModel):
    """The scheduler that leads."""

    present: bool
    name: str = Field(description="host:pid; empty while nobody leads.")
    since: str | None
    epoch: int
    standbys: int


class HealthQueue(BaseModel):
    """The targets that wait for their polls."""

    depth: int = Field(description="Targets that wait for their time, or are overdue.")
    due_within_12_seconds: int = Field(
        description="The number of targets that are due within 12 seconds, or are overdue."
    )
    overdue: int
    batches_waiting: int = Field(description="Published batches that no worker has taken yet.")
    per_collector: dict[str, int] = Field(description="Waiting targets by collector.")
    due_within_12_seconds_per_collector: dict[str, int]


class HealthLateness(BaseModel):
    """Start minus plan of the polls of the last five minutes."""

    polls: int
    p50_seconds: float | None
    p99_seconds: float | None
    max_seconds: float | None


class HealthThroughput(BaseModel):
    polls_per_second: float = Field(description="Over the last minute.")
    outcomes_last_5_min: dict[str, int]


class HealthDomain(BaseModel):
    """One domain: the polls it needs, and those that its workers do."""

    queue: str
    collector: str
    requires: dict[str, str] = Field(description="Tags that its workers must have.")
    workers: int
    waiting: int
    overdue: int
    due_within_12_seconds: int
    batches_waiting: int
    needed_per_second: float
    done_per_second: float
    times_the_workers_needed: float | None = Field(
        description="0: they keep up; null: no polls are done."
    )


class HealthUnroutable(BaseModel):
    """A domain that no running worker serves."""

    queue: str
    targets: int
    needs: str
    reason: str


class HealthWorker(BaseModel):
    name: str
    instance: str
    running: bool
    seen: str | None
    started: str | None
    last_poll: str | None
    polls: int
    in_flight: int
    slots: int
    memory_bytes: int
    tags: dict[str, str]
    queues: list[str]
    store_error: str
    spool_waiting: int
    spool_dropped: int


class HealthBoard(BaseModel):
    """Targets by place and by state. Each is in one place, and has one state."""

    targets: int
    waiting: int
    in_flight: int
    not_started: int = Field(description="In flight, and not started for some seconds.")
    parked: int
    held: int
    long_overdue: int = Field(description="By more than two of their intervals; a lower bound.")
    states: dict[str, int]
    dark_sites: list[str]


class HealthStores(BaseModel):
    """Errors of the stores; an empty text for a store that works."""

    redis: str
    sql: str


class HealthSinks(BaseModel):
    names: list[str] = Field(description="The sinks of this machine's settings.")
    spool_waiting: int = Field(description="Polls whose rows wait on the disks of workers.")
    spool_dropped: int
    by_name: dict[str, SinkSummary] = Field(description="The sinks of the running workers.")


class HealthJobs(BaseModel):
    total: int
    states: dict[str, int]
    troubled: list[dict[str, Any]] = Field(description="The worst first.")


class HealthNotClosed(BaseModel):
    """A breaker that is not closed."""

    key: str
    type: str
    state: str
    failures: int
    since: str | None
    retry_at: str | None


class HealthBreakers(BaseModel):
    open: int = Field(description="Because of failures.")
    opened_by_hand: int
    not_closed: list[HealthNotClosed] = Field(
        description="Up to 25, by the age of the last good poll; all with `where=state:open`."
    )


class HealthLetter(BaseModel):
    """A dead letter."""

    key: str
    type: str
    site: str
    reason: str
    error_code: str
    message: str
    parked: str | None
    next_retry: str | None
    attempts: int


class HealthLetters(BaseModel):
    count: int
    by_reason: dict[str, int]
    newest: list[HealthLetter] = Field(description="Up to 25, the newest first.")


class HealthStale(BaseModel):
    """A target with old data."""

    key: str
    type: str
    score: float = Field(description="0 for fresh data, 1 for old data and for none.")
    last_success: str | None
    last_error: str


class HealthStaleness(BaseModel):
    """Targets that are not ok, by the age of their last good poll."""

    never_good: int = Field(description="No good poll yet.")
    older_than_5_min: int
    older_than_1_hour: int
    older_than_1_day: int
    stalest: list[HealthStale] = Field(description="Up to 25, the stalest first.")


class InstanceError(BaseModel):
    """The error of the last poll. A good poll ends it."""

    at: str | None
    code: str
    message: str
    category: str = Field(description="transient: may pass by itself; permanent: it will not.")


class InstancePollStatus(BaseModel):
    last_success: str | None
    last_poll: str | None
    last_outcome: str = Field(description="ok, partial, failed or refused; empty before a poll.")
    duration_seconds: float | None = Field(description="Null until the run is in the ledger.")
    last_error: InstanceError | None
    consecutive_failures: int
    first_failure: str | None = Field(description="Of the failures in a row.")


class InstanceBreaker(BaseModel):
    state: str
    since: str | None
    last_transition: str | None
    retry_at: str | None
    failures: int
    trips: int = Field(description="Openings and failed probes since it was closed.")
    opened_by: str = Field(description="The operator who opened it by hand; empty for failures.")
    opened_reason: str = Field("", description="The reason that the operator gave.")


class InstanceLetter(BaseModel):
    present: bool
    reason: str
    first_attempt: str | None
    last_attempt: str | None
    attempts: int
    next_retry: str | None


class InstanceSchedule(BaseModel):
    policy: str
    interval_seconds: float
    current_interval_seconds: float = Field(description="Of an adaptive target: as decided last.")
    place: str = Field(description="due, urgent, in_flight, parked, held; empty: not on the board.")
    queue: str
    next_due: str | None
    last_plan: str | None
    missed_slots: int
    overdue_seconds: float
    overdue: bool = Field(description="By more than two of its own intervals.")


class HealthInstance(BaseModel):
    """The health of one target."""

    key: str = Field(description="device/target")
    target_id: int
    type: str = Field(description="The collector.")
    display_name: str
    device: str
    target: str
    address: str
    site: str
    tags: list[str]
    enabled: bool
    state: str = Field(description="ok, degraded, failing, unknown or disabled.")
    poll_status: InstancePollStatus
    breaker: InstanceBreaker
    dead_letter: InstanceLetter
    schedule: InstanceSchedule
    staleness_score: float
    warnings: list[str]


class HealthDocument(BaseModel):
    """The whole picture: the scheduler, and one page of targets."""

    schema_: Literal["poller.scheduler.health/1"] = Field(
        "poller.scheduler.health/1", serialization_alias="schema"
    )
    updated_at: str = Field(description="By the clock of the cluster; at most a second old.")
    enabled: bool = Field(description="Whether polls are scheduled: a scheduler leads.")
    verdict: HealthVerdict
    leader: HealthLeader
    queue: HealthQueue
    lateness: HealthLateness
    throughput: HealthThroughput
    capacity: list[HealthDomain] = Field(description="Of each domain.")
    workers: list[HealthWorker]
    unroutable: list[HealthUnroutable]
    board: HealthBoard
    stores: HealthStores
    sinks: HealthSinks
    jobs: HealthJobs
    breakers: HealthBreakers
    dead_letters: HealthLetters
    staleness: HealthStaleness
    instances: list[HealthInstance] = Field(description="One page, in the order of keys.")
    instances_error: str = Field(description="Why instances cannot be read; empty if they can.")
    scanned: int = Field(description="Rows that were looked at for this page.")
    next: str | None = Field(
        description="`cursor` of the next page; null on the last. A page can be short or empty "
        "although another one follows: a request looks at a bounded number of rows."
    )
