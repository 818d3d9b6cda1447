"""A run of the ledger as JSON, schema `poller.runs/1`. Fields may be added, never changed."""

from __future__ import annotations

from pydantic import BaseModel, Field

from poller.db.record.run_pages import NamedRun
from poller.domain.failures import error_codes
from poller.domain.failures.outcome import Result
from poller.presentation.record import instants
from poller.presentation.record.instants import Instant

SCHEMA = "poller.runs/1"


class RunItem(BaseModel):
    """One planned poll of one target, and how it ended."""

    planned: Instant | None = Field(description="The slot that the run serves.")
    device: str = Field(description="Empty for a target that was removed.")
    target: str = Field(description="Empty for a target that was removed.")
    target_id: int
    late_seconds: float | None = Field(description="Start minus plan; null if it never started.")
    took_seconds: float | None = Field(description="End minus start; null if it never started.")
    queue_seconds: float = Field(description="From the claim to the first start.")
    collect_seconds: float = Field(description="The device's part of the last attempt.")
    write_seconds: float = Field(description="The time that the sinks took.")
    outcome: Result
    error_code: str = Field(description="Empty when all went well.")
    category: str = Field(description="transient or permanent; empty without an error.")
    samples: int
    attempt: int
    runner: str = Field(description="The worker.")
    message: str
    started: Instant | None
    finished: Instant | None
    lease: str = Field(description="The token of the claim.")


def item(named: NamedRun) -> RunItem:
    """Return the fields of a run."""
    run = named.run
    return RunItem(
        planned=instants.of_ms(run.plan_ms),
        device=named.device,
        target=named.target,
        target_id=run.target_id,
        late_seconds=None if run.lateness_ms is None else run.lateness_ms / 1000,
        took_seconds=run.duration_ms / 1000 if run.started_ms else None,
        queue_seconds=run.queue_ms / 1000,
        collect_seconds=run.collect_ms / 1000,
        write_seconds=run.write_ms / 1000,
        outcome=run.outcome,
        error_code=run.error_code,
        category=error_codes.category_of(run.error_code),
        samples=run.samples,
        attempt=run.attempt,
        runner=run.runner,
        message=run.message,
        started=instants.of_ms(run.started_ms),
        finished=instants.of_ms(run.finished_ms),
        lease=run.token,
    )
