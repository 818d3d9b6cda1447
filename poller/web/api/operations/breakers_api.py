"""`/api/v1/breakers`: targets that are not polled, because they keep failing or by hand."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any

from fastapi import Body, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from poller.domain.inventory import target_filter
from poller.presentation import formatting
from poller.service import bulk_confirmation
from poller.service.operations import breaker_actions, target_choice
from poller.service.operations.breaker_actions import BreakersQuery, Pause
from poller.service.operations.shown_breakers import ShownBreaker
from poller.service.operations.target_choice import Choice
from poller.web.api.contract import bulk_bodies, paging, problems, resources, target_ids
from poller.web.api.contract.bulk_bodies import BulkRequest, Matches
from poller.web.api.contract.needs import Call, Operating, Reading
from poller.web.api.contract.paging import Cursor, Limit, Page
from poller.web.api.contract.target_ids import TargetId, WhereQuery

router = resources.router("breakers")

Length = Annotated[
    float,
    Field(
        ge=breaker_actions.SHORTEST_S,
        le=breaker_actions.LONGEST_S,
        description="For how many seconds the targets are not polled.",
    ),
]


class BreakerBody(BaseModel):
    """The breaker of a target, open or closed."""

    target_id: int
    device: str
    target: str
    breaker: str = Field(description="`closed`, `open` or `half_open`.")
    by: str = Field(description="`failures` or `hand (NAME)`; empty if it is closed.")
    reason: str = Field("", description="The reason that who opened it by hand gave.")
    since: datetime | None
    for_seconds: int | None
    failures: int = Field(description="Failures in a row.")
    trips: int
    next_poll: datetime | None
    in_seconds: int | None
    place: str = Field(description="`due`, `urgent`, `in_flight`, `parked` or `held`.")
    dead_letter: str = Field(description="The reason of its dead letter; empty if it has none.")
    error_code: str
    category: str
    message: str


class BreakerPage(Page[BreakerBody]):
    """Open breakers, the longest open first."""

    total: int = Field(description="All that match, not only this page.")
    by_hand: int = Field(description="Those of them that were opened by hand.")


class OpenRequest(BaseModel):
    """How long a breaker is kept open, and why."""

    model_config = ConfigDict(extra="forbid")

    for_s: Length = 1800
    reason: str = Field("", description="Why, for those who look later: one line.")


class BulkOpenRequest(BulkRequest, OpenRequest):
    """How long the breakers of all that match are kept open."""


class ResetBody(Matches):
    """The numbers of a reset."""

    reset: int = 0
    closed_already: int = 0
    in_flight: int = Field(0, description="A poll runs; its result wins.")
    site_dark: int = Field(0, description="Polled when their dark site is back.")
    not_on_board: int = 0
    changed: int = Field(0, description="Left as they were, because they changed meanwhile.")


class OpenedBody(Matches):
    """The numbers of an opening by hand."""

    opened: int = 0
    in_flight: int = 0
    until: datetime | None = None
    by: str = ""


@router.get("")
def list_breakers(
    call: Reading,
    request: Request,
    response: Response,
    where: WhereQuery = "",
    limit: Limit = paging.DEFAULT_LIMIT,
    cursor: Cursor = "",
) -> BreakerPage:
    """List open breakers, the longest open first."""
    key = paging.decode(cursor, int, int)
    after = (key[0], key[1]) if key else None
    query = BreakersQuery(limit, after, target_ids.parsed(where))
    found = breaker_actions.listing(call.services, call.actor, query)
    following = paging.encode(found.next_key)
    paging.link_next(request, response, following)
    items = [_body(each) for each in found.items]
    return BreakerPage(items=items, next=following, total=found.total, by_hand=found.by_hand)


@router.get("/{target_id}")
def show_breaker(call: Reading, target_id: TargetId) -> BreakerBody:
    """Show the breaker of one target, open or closed."""
    chosen = target_choice.with_ids(call.services, call.actor, [target_id])
    [found] = breaker_actions.show(call.services, chosen)
    return _body(found)


@router.post("/reset", responses=problems.CHANGING)
def reset_breakers(call: Operating, bulk: BulkRequest) -> ResetBody:
    """Close the breakers of all targets that match, and clear their failures."""
    chosen, subject = _matching(call, bulk)
    shown = _matches(chosen, bulk.dry_run)
    if bulk.dry_run:
        return ResetBody(**shown)
    action = f"reset the breakers of {formatting.counted(len(chosen), 'target')}"
    bulk_confirmation.refuse_unconfirmed(action, len(chosen), bulk.confirm)
    return _reset(call, chosen, subject)


@router.post("/open", responses=problems.CHANGING)
def open_breakers(call: Operating, bulk: BulkOpenRequest) -> OpenedBody:
    """Open the breakers of all targets that match: they are not polled for a while."""
    chosen, subject = _matching(call, bulk)
    shown = _matches(chosen, bulk.dry_run)
    if bulk.dry_run:
        return OpenedBody(**shown)
    action = f"open the breakers of {formatting.counted(len(chosen), 'target')}"
    bulk_confirmation.refuse_unconfirmed(action, len(chosen), bulk.confirm)
    return _open(call, chosen, bulk, subject)


@router.post("/{target_id}/reset", responses=problems.CHANGING)
def reset_breaker(call: Operating, target_id: TargetId) -> ResetBody:
    """Close the breaker of one target, and clear its failures."""
    chosen = target_choice.with_ids(call.services, call.actor, [target_id])
    return _reset(call, chosen, chosen[target_id].full_name)


@router.post("/{target_id}/open", responses=problems.CHANGING)
def open_breaker(
    call: Operating, target_id: TargetId, opening: Annotated[OpenRequest | None, Body()] = None
) -> OpenedBody:
    """Open the breaker of one target: it is not polled for a while, except on demand."""
    chosen = target_choice.with_ids(call.services, call.actor, [target_id])
    return _open(call, chosen, opening or OpenRequest(), chosen[target_id].full_name)


def _matching(call: Call, bulk: BulkRequest) -> tuple[Choice, str]:
    """The targets that match, and the text that selected them. Raises NotFound if none does."""
    wanted = bulk.wanted()
    found = target_choice.matching(call.services, call.actor, wanted)
    return found, target_filter.text(wanted)


def _reset(call: Call, chosen: Choice, subject: str) -> ResetBody:
    done = breaker_actions.reset(call.services, call.actor, chosen, subject)
    return ResetBody(**_matches(chosen, dry_run=False) | asdict(done))


def _open(call: Call, chosen: Choice, asked: OpenRequest, subject: str) -> OpenedBody:
    pause = Pause(asked.for_s, asked.reason)
    done = breaker_actions.open_by_hand(call.services, call.actor, chosen, pause, subject)
    return OpenedBody(**_matches(chosen, dry_run=False) | asdict(done))


def _matches(chosen: Choice, dry_run: bool) -> dict[str, Any]:
    return bulk_bodies.matched(target_choice.full_names(chosen.values()), dry_run)


def _body(shown: ShownBreaker) -> BreakerBody:
    return BreakerBody.model_validate(shown, from_attributes=True)
