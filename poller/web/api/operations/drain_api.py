"""`/api/v1/workers/drain` and `/resume`: workers finish what they have, and take nothing new."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from poller.presentation import formatting
from poller.service.operations import drain_actions
from poller.service.operations.drain_actions import DrainPlan
from poller.web.api.contract import problems, resources
from poller.web.api.contract.bulk_bodies import DryRun
from poller.web.api.contract.needs import OperatingAll

router = resources.router("workers")

Name = Annotated[str, Field(min_length=1, max_length=255, pattern=r"^[^\x00]*$")]
Names = Annotated[
    list[Name],
    Field(min_length=1, max_length=drain_actions.MOST_WORKERS, description="Names of workers."),
]


class DrainRequest(BaseModel):
    """Which workers, for how long, and why."""

    model_config = ConfigDict(extra="forbid")

    names: Names
    for_s: float = Field(
        drain_actions.USUAL_S,
        ge=drain_actions.SHORTEST_S,
        le=drain_actions.LONGEST_S,
        description="They take work again after this many seconds.",
    )
    reason: Annotated[
        str,
        Field(max_length=drain_actions.LONGEST_REASON, description="For those who look later."),
    ] = ""
    force: bool = Field(False, description="Also if a queue then has no worker; else 409.")
    dry_run: DryRun = False


class ResumeRequest(BaseModel):
    """Which workers take work again."""

    model_config = ConfigDict(extra="forbid")

    names: Names


class QueueCoverBody(BaseModel):
    """A queue of the drained workers."""

    name: str
    other_workers: int = Field(description="Other running workers that serve it meanwhile.")


class DrainBody(BaseModel):
    """The drained workers, and who serves their queues meanwhile."""

    dry_run: bool = Field(description="True: nothing was changed.")
    names: list[str]
    until: datetime | None = Field(None, description="Null for a dry run.")
    by: str = ""
    unfinished: int = Field(description="Batches and jobs that they have; they finish these.")
    queues: list[QueueCoverBody]
    left: list[str] = Field(description="Queues without another worker.")
    note: str = Field("", description="What went wrong beside the drain.")


class ResumedBody(BaseModel):
    """The workers whose drain was ended."""

    names: list[str]
    unchanged: int = Field(description="Workers that were not drained.")
    note: str = Field("", description="What went wrong beside it.")


@router.post("/drain", responses=problems.CHANGING)
def drain_workers(call: OperatingAll, wanted: DrainRequest) -> DrainBody:
    """Have workers finish what they have and take nothing new. `GET /workers` shows when each is
    done.
    """
    if wanted.dry_run:
        return _body(drain_actions.plan(call.services, wanted.names), dry_run=True)
    done = drain_actions.drain(
        call.services, call.actor, wanted.names, wanted.for_s, wanted.reason, wanted.force
    )
    until = formatting.utc(done.drain.until_ms)
    update = {"until": until, "by": done.drain.by, "note": done.note}
    return _body(done.plan, dry_run=False).model_copy(update=update)


@router.post("/resume", responses=problems.CHANGING)
def resume_workers(call: OperatingAll, wanted: ResumeRequest) -> ResumedBody:
    """End the drain of workers: they take work again."""
    done = drain_actions.resume(call.services, call.actor, wanted.names)
    return ResumedBody(names=list(done.names), unchanged=done.others, note=done.note)


def _body(planned: DrainPlan, dry_run: bool) -> DrainBody:
    queues = [
        QueueCoverBody(name=each.queue, other_workers=len(each.others)) for each in planned.covers
    ]
    return DrainBody(
        dry_run=dry_run,
        names=list(planned.names),
        unfinished=planned.unfinished,
        queues=queues,
        left=planned.left,
    )
