"""`/api/v1/collectors/{name}/release`: the end of a collector's isolation or quarantine."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import Body, Path
from pydantic import BaseModel, ConfigDict, Field

from poller.service.operations import collector_actions
from poller.service.operations.collector_actions import Held
from poller.web.api.contract import problems, resources
from poller.web.api.contract.bulk_bodies import DryRun
from poller.web.api.contract.needs import OperatingAll
from poller.web.api.operations import poll_wait

router = resources.router("collectors")

CollectorName = Annotated[
    str, Path(max_length=200, pattern=r"^[^\x00]*$", description="The name of the collector.")
]


class ReleaseRequest(BaseModel):
    """How to release."""

    model_config = ConfigDict(extra="forbid")

    dry_run: DryRun = False


class ReleaseRecord(BaseModel):
    """The evidence against one release of a collector."""

    distribution: str
    state: str
    since: datetime | None
    since_seconds: int | None
    crashes: int
    reason: str


class ReleasedBody(BaseModel):
    """A collector that runs like any other again."""

    collector: str
    dry_run: bool = Field(description="True: nothing was changed.")
    released: list[ReleaseRecord]
    letters: int = Field(description="Its dead letters before the release.")
    requeued: int = 0
    opened_by_hand: int = 0
    not_on_board: int = 0
    ticket: str | None = Field(
        None, description="GET /api/v1/polls/TICKET has the results; null for none or too many."
    )
    note: str = Field("", description="What went wrong beside the release.")


@router.post("/{name}/release", responses=problems.CHANGING)
def release_collector(
    call: OperatingAll,
    name: CollectorName,
    wanted: Annotated[ReleaseRequest | None, Body()] = None,
) -> ReleasedBody:
    """End the isolation or quarantine of a collector, and requeue its dead letters."""
    if wanted is not None and wanted.dry_run:
        return _body(collector_actions.held(call.services, name), dry_run=True)
    done = collector_actions.release(call.services, call.actor, name)
    body = _body(done.held, dry_run=False)
    requeued = done.requeued
    ticket = poll_wait.ticket_of(call, requeued.ids, requeued.requested_ms)
    update = {**requeued.counts(), "ticket": ticket, "note": done.note}
    return body.model_copy(update=update)


def _body(held: Held, dry_run: bool) -> ReleasedBody:
    records = [ReleaseRecord(**each) for each in held.releases()]
    return ReleasedBody(
        collector=held.collector,
        dry_run=dry_run,
        released=records,
        letters=len(held.letters),
    )
