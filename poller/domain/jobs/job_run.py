"""A run of a job: one plan of one scope, as the ledger has it, and the codes of its failures."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

#: The kind and the id of the scope that is the whole cluster.
GLOBAL = "global"


class Status(enum.StrEnum):
    """The status of a run. An abandoned run is RUNNING until the leader closes it."""

    RUNNING = "RUNNING"
    SUCCESS = "SUCCESS"
    FAILED = "FAILED"


class FailureCode(enum.StrEnum):
    """Why a run failed."""

    RUN_TIMEOUT = "run_timeout"
    CANCELED = "canceled"  # its worker stopped; the attempt was given back
    LEASE_LOST = "lease_lost"
    HANDLER_PANIC = "handler_panic"  # the handler ended in a way that is no exception of its own
    HANDLER_ERROR = "handler_error"
    UNKNOWN_SCOPE = "unknown_scope"  # a person named a scope that the job does not have
    STALE_TIMEOUT = "stale_timeout"  # its runner sent no heartbeat any more


class Origin(enum.StrEnum):
    """The cause of a run: the schedule, or a person."""

    SCHEDULE = "schedule"
    DEMAND = "demand"


class Plan(NamedTuple):
    """The identity of a run. The ledger has one row for each."""

    job: str
    scope_kind: str
    scope_id: str
    plan_ms: int

    @property
    def scope(self) -> str:
        """The scope for people: `site:ams`, or `global` for the whole cluster."""
        return scope_text(self.scope_kind, self.scope_id)


def scope_text(kind: str, key: str) -> str:
    """`site:ams`, as people write it after --scope; `global` for the whole cluster."""
    return GLOBAL if kind == key == GLOBAL else f"{kind}:{key}"


@dataclass(frozen=True, slots=True)
class JobRun:
    """A row of the ledger. Times are UTC, in ms, by the clock of the database."""

    id: int
    plan: Plan
    origin: Origin
    status: Status
    attempt: int
    max_attempts: int
    next_retry_ms: int | None
    runner: str
    dispatched_ms: int
    started_ms: int
    heartbeat_ms: int
    stale_ms: int
    finished_ms: int | None
    duration_ms: int | None
    rows_affected: int
    result: Mapping[str, Any]
    error_code: str
    message: str
    losses: int = 0  # attempts in a row, the last ones, whose runner was lost
