"""`/api/v1/polls`: polls on demand. The response waits for them, or has a ticket."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated

from fastapi import Path, Query, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from poller import errors
from poller.domain.inventory import target_filter
from poller.domain.record.target_status import Status
from poller.presentation import formatting
from poller.service import bulk_confirmation
from poller.service.operations import poll_actions, target_choice
from poller.service.operations.poll_actions import PollRequest
from poller.service.operations.target_choice import Choice
from poller.web.api.contract import bulk_bodies, problems, resources
from poller.web.api.contract.bulk_bodies import Confirm, DryRun, Matches, Where
from poller.web.api.contract.needs import Call, Operating, Reading
from poller.web.api.contract.target_ids import LARGEST_ID
from poller.web.api.operations import poll_wait

router = resources.router("polls")

LONGEST_WAIT_S = 60
ACCEPTED = 202

Ticket = Annotated[str, Path(pattern="^[0-9a-f]{32}$", description="`ticket` of a request.")]
WaitQuery = Annotated[
    float, Query(ge=0, le=LONGEST_WAIT_S, description="Seconds to wait for all results.")
]


class PollsRequest(BaseModel):
    """Which targets to poll now: by id, all of a device, or all that match a filter."""

    model_config = ConfigDict(extra="forbid")

    targets: (
        Annotated[
            list[Annotated[int, Field(ge=1, le=LARGEST_ID)]],
            Field(min_length=1, max_length=poll_wait.MOST_TARGETS, description="Ids of targets."),
        ]
        | None
    ) = None
    device: (
        Annotated[
            str,
            Field(
                min_length=1,
                max_length=300,
                pattern=r"^[^\x00]*$",
                description="The name of a device.",
            ),
        ]
        | None
    ) = None
    where: Where | None = None
    wait_s: float = Field(
        0, ge=0, le=LONGEST_WAIT_S, description="Seconds to wait for all results."
    )
    dry_run: DryRun = False
    confirm: Confirm = None


class PollResultBody(BaseModel):
    """The outcome of the poll of one target."""

    target_id: int
    device: str
    target: str
    collector: str
    state: str = Field(description="`ok`, `degraded`, `failing`; `waiting` without a result.")
    samples: int
    error_code: str
    message: str
    finished: datetime | None


class PollsBody(Matches):
    """The results of polls on demand."""

    complete: bool = Field(description="Every target has a result.")
    waiting: int = Field(description="Targets without a result.")
    ticket: str | None = Field(
        None,
        description="GET /api/v1/polls/TICKET has the results, for an hour; null if complete.",
    )
    requested: datetime | None = None
    items: list[PollResultBody] = Field(default_factory=list)


@router.post(
    "",
    responses={
        **problems.CHANGING,
        ACCEPTED: {"model": PollsBody, "description": "Not complete: read the ticket."},
    },
)
async def poll_now(call: Operating, response: Response, wanted: PollsRequest) -> PollsBody:
    """Poll targets now, before routine polls. 202 with a ticket if a result is missing."""
    chosen, subject = await run_in_threadpool(_chosen, call, wanted)
    if wanted.dry_run:
        return _plan(chosen)
    _refuse_unconfirmed(chosen, wanted)

    asked = await run_in_threadpool(
        poll_actions.request, call.services, call.actor, chosen, subject
    )
    done = await poll_wait.finished(call.services, asked.ids, asked.requested_ms, wanted.wait_s)
    body = await run_in_threadpool(_results, call, chosen, asked, done)
    if not body.complete:
        ids, requested_ms = asked.ids, asked.requested_ms
        body.ticket = await run_in_threadpool(poll_wait.ticket_of, call, ids, requested_ms)
        response.status_code = ACCEPTED
        response.headers["Location"] = f"{problems.PREFIX}/polls/{body.ticket}"
    return body


@router.get("/{ticket}")
async def show_polls(call: Reading, ticket: Ticket, wait_s: WaitQuery = 0) -> PollsBody:
    """Show the results of polls that were requested within the last hour."""
    found, chosen = await run_in_threadpool(poll_actions.ticket, call.services, call.actor, ticket)
    asked = PollRequest(list(chosen), found.requested_ms)
    done = await poll_wait.finished(call.services, asked.ids, asked.requested_ms, wait_s)
    body = await run_in_threadpool(_results, call, chosen, asked, done)
    body.ticket = None if body.complete else ticket
    return body


def _chosen(call: Call, wanted: PollsRequest) -> tuple[Choice, str]:
    """The targets, and what selected them. Raises InvalidInput unless one field selects."""
    given = [wanted.targets, wanted.device, wanted.where]
    if sum(each is not None for each in given) != 1:
        raise errors.InvalidInput(
            "targets, device, where: send one of these", hint='for example {"device": "sw-1"}'
        )
    services, actor = call.services, call.actor
    if wanted.targets is not None:
        found = target_choice.with_ids(services, actor, list(dict.fromkeys(wanted.targets)))
        names = target_choice.full_names(found.values())
        return found, " ".join(names)
    if wanted.device is not None:
        return target_choice.named(services, actor, [(wanted.device, None)]), wanted.device

    matching = target_filter.parse_nonempty(wanted.where or "", "where")
    found = poll_actions.matching_enabled(services, actor, matching)
    if len(found) > poll_wait.MOST_TARGETS and not wanted.dry_run:
        raise errors.InvalidInput(
            f"where: {len(found):,} targets match, and one request polls "
            f"{poll_wait.MOST_TARGETS:,} at most",
            hint="send several requests with narrower filters",
        )
    return found, target_filter.text(matching)


def _refuse_unconfirmed(chosen: Choice, wanted: PollsRequest) -> None:
    """Raise NotConfirmed for many targets that a filter selects, without their number."""
    if wanted.where is None and wanted.confirm is None:
        return
    action = f"poll {formatting.counted(len(chosen), 'target')} now"
    count = len(chosen)
    bulk_confirmation.refuse_unconfirmed(action, count, wanted.confirm, poll_actions.MANY)


def _plan(chosen: Choice) -> PollsBody:
    shown = bulk_bodies.matched(target_choice.full_names(chosen.values()), dry_run=True)
    return PollsBody(**shown, complete=False, waiting=0)


def _results(
    call: Call, chosen: Choice, asked: PollRequest, done: Mapping[int, Status]
) -> PollsBody:
    found = poll_actions.results(call.services, chosen, done)
    names = target_choice.full_names(chosen.values())
    return PollsBody(
        **bulk_bodies.matched(names, dry_run=False),
        complete=len(done) == len(chosen),
        waiting=len(chosen) - len(done),
        requested=formatting.utc(asked.requested_ms),
        items=[PollResultBody.model_validate(each, from_attributes=True) for each in found],
        note=asked.note,
    )
