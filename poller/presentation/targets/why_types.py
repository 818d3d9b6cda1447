"""The document of an explanation, schema `poller.why/1`, as types.

Instants are RFC 3339 in UTC, to the second; null for "never" and "unknown".
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

SCHEMA = "poller.why/1"
LIST_SCHEMA = "poller.why.list/1"


class WhySummary(BaseModel):
    """The few fields that a list of targets shows."""

    target_id: int | None
    device: str | None = Field(description="Null while the database is away.")
    target: str | None
    cause: str = Field(description="One word for the cause, such as `breaker_open`.")
    is_bad: bool = Field(description="Whether something is wrong.")
    sentence: str
    state: str | None = Field(description="Of the last poll: ok, degraded, failing or unknown.")
    place: str | None = Field(description="On the board: due, urgent, in_flight, parked or held.")
    next_poll: str | None
    next_poll_in_seconds: int | None = Field(description="Negative for an overdue target.")


class WhyBoard(BaseModel):
    """Where the target is on the board, and who holds it."""

    place: str
    queue: str
    due: str | None
    holder: str = Field(description="The worker that started the poll in flight.")
    claimed: str | None
    planned: str | None
    attempt: int | None = Field(description="0 before a worker has started the poll.")
    lease_ends: str | None
    lease: str
    batches_waiting: int
    targets_overdue: int


class WhyStep(BaseModel):
    """One term of the next due time; `seconds` is the interval or the wait after it."""

    name: str
    text: str
    seconds: float | None


class WhySchedule(BaseModel):
    """How the next due time was computed."""

    policy: str | None
    interval_seconds: float
    timeout_seconds: float | None
    rule: str | None
    next: str | None
    steps: list[WhyStep]


class WhyStatus(BaseModel):
    """The last polls."""

    state: str
    since: str | None
    last_poll: str | None
    last_good: str | None
    failures: int
    missed_slots: int
    error_code: str
    category: str
    message: str


class WhyBreaker(BaseModel):
    state: str
    trips: int
    since: str | None
    probe: str | None
    opened_by: str = Field(description="The operator who opened it by hand; empty for failures.")
    opened_reason: str = Field("", description="The reason that the operator gave.")
    opened_until: str | None


class WhyDeadLetter(BaseModel):
    reason: str
    since: str | None
    attempts: int
    next_retry: str | None


class WhySite(BaseModel):
    name: str
    is_dark: bool
    dark_since: str | None
    canaries: list[int]
    neighbours: int = Field(description="Other devices of the site that were polled.")
    neighbours_answering: int
    is_sample: bool = Field(description="The site has more devices than were looked at.")


class WhyLeader(BaseModel):
    name: str
    epoch: int
    since: str | None
    standbys: int


class WhyWorker(BaseModel):
    """A worker: whether it may take the target, and why not."""

    worker: str
    fits: bool
    reason: str


class WhyCredential(BaseModel):
    """The name of the credential, never its secret."""

    name: str
    of: Literal["target", "device"]


class WhyRun(BaseModel):
    """One of the last runs, with its slowest part."""

    planned: str | None
    outcome: str
    error_code: str
    message: str
    runner: str
    attempt: int
    samples: int
    late_seconds: float | None
    took_seconds: float | None
    slowest: str
    slowest_seconds: float | None
    parts: dict[str, float]


class WhyAlert(BaseModel):
    """An open alert of the target or its device."""

    id: int
    rule: str
    severity: str
    state: str
    since: str | None
    suppressed_by: str
    acknowledged_by: str
    text: str
    sentence: str


class WhyStores(BaseModel):
    """Errors of the stores; an empty text for a store that works."""

    redis: str
    sql: str


class WhyItem(WhySummary):
    """The explanation of one target."""

    also: list[str] = Field(description="Sentences of the other causes that hold.")
    hint: str = Field(description="A command, or what to do; empty for a healthy target.")
    board: WhyBoard | None
    schedule: WhySchedule
    status: WhyStatus | None
    breaker: WhyBreaker | None
    dead_letter: WhyDeadLetter | None
    site: WhySite
    leader: WhyLeader | None
    workers: list[WhyWorker]
    collector: str | None
    credential: WhyCredential | None
    options: dict[str, Any] | None
    alerts: list[WhyAlert] = Field(description="Open ones of the target and its device.")
    runs: list[WhyRun] = Field(description="The last five, newest first.")
    stores: WhyStores


class WhyDocument(WhyItem):
    """The explanation of one target, at an instant of the cluster's clock."""

    schema_: Literal["poller.why/1"] = Field("poller.why/1", serialization_alias="schema")
    as_of: str | None = Field(description="Null while Redis is away.")
