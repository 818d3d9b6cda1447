"""`/api/v1/dead-letters`: targets that need a person; they are polled at a slow rate meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

from fastapi import Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from poller import errors, event_publisher
from poller.db.record.dead_letter_rows import Named
from poller.domain.failures.dead_letter import GroupBy, Reason
from poller.domain.inventory import target_filter
from poller.presentation import formatting
from poller.service import bulk_confirmation
from poller.service.operations import letter_actions, shown_letters
from poller.service.operations.letter_actions import LetterQuery
from poller.service.operations.shown_letters import ShownLetter
from poller.web.api.contract import (
    api_hints,
    bulk_bodies,
    paging,
    problems,
    resources,
    target_ids,
)
from poller.web.api.contract.bulk_bodies import Confirm, DryRun, Matches, Where
from poller.web.api.contract.needs import Call, Editing, Operating, Reading
from poller.web.api.contract.paging import Cursor, Limit, Page
from poller.web.api.contract.target_ids import TargetId, WhereQuery
from poller.web.api.operations import poll_wait

router = resources.router("dead-letters")

#: Characters of the text of an error, which is stored in a shorter form.
LONGEST_MESSAGE = 2_000

WantedMessage = Annotated[
    str, Query(max_length=LONGEST_MESSAGE, description="Only with exactly this text of the error.")
]
WantedReason = Annotated[Reason | None, Query(description="Only parked for this reason.")]


class LetterBody(BaseModel):
    """A dead letter."""

    target_id: int
    device: str
    target: str
    site: str
    collector: str
    reason: str = Field(description="Why the target is parked.")
    error_code: str = Field(description="How its last poll failed.")
    category: str
    message: str
    first_failure: datetime | None
    last_failure: datetime | None
    parked: datetime | None
    parked_seconds: int
    attempts: int
    next_try: datetime | None
    next_try_seconds: int


class LetterDetails(LetterBody):
    """A dead letter, and what to do about it."""

    meaning: str
    hint: str


class GroupBody(BaseModel):
    """Letters that most likely have one cause, or that share what `by` says."""

    reason: str
    error_code: str
    category: str
    collector: str
    site: str
    device: str
    message: str = Field(description="The error of one of them.")
    texts: int = Field(description="How many different errors they have.")
    letters: int
    devices: int
    sites: int
    first_failure: datetime | None
    last_failure: datetime | None
    first_seconds: int
    last_seconds: int
    oldest_seconds: int = Field(description="Since the first of them was parked.")
    arrived_last_hour: int


class GroupList(BaseModel):
    """All groups, the largest first."""

    items: list[GroupBody]
    total: int = Field(description="Letters in all groups.")


class LettersRequest(BaseModel):
    """A change of all letters that match the filter, the reason and the text of the error."""

    model_config = ConfigDict(extra="forbid")

    where: Where | None = None
    reason: Reason | None = None
    message: str = Field(
        "", max_length=LONGEST_MESSAGE, description="Only with exactly this text of the error."
    )
    dry_run: DryRun = False
    confirm: Confirm = None

    def query(self) -> LetterQuery:
        """The letters. Raises InvalidInput for a request that selects nothing."""
        if self.where is None and self.reason is None and not self.message:
            hint = "send where, reason or message; all: where \"name:'*'\""
            raise errors.InvalidInput("where: say which dead letters", hint=hint)
        wanted = target_filter.ANY
        if self.where is not None:
            wanted = target_filter.parse_nonempty(self.where, "where")
        reason = self.reason.value if self.reason else ""
        return LetterQuery(reason, wanted, message=self.message)


class RequeuedBody(Matches):
    """The numbers of a requeue."""

    requeued: int = Field(0, description="Polled soon; above 64 they are spread, 64 a second.")
    opened_by_hand: int = Field(0, description="Left alone: their breaker was opened by hand.")
    not_on_board: int = 0
    ticket: str | None = Field(
        None, description="GET /api/v1/polls/TICKET has the results; null for too many."
    )


class DroppedBody(Matches):
    """The number of dropped letters; as many targets are disabled."""

    dropped: int = 0


@router.get("")
def list_letters(
    call: Reading,
    request: Request,
    response: Response,
    where: WhereQuery = "",
    reason: WantedReason = None,
    message: WantedMessage = "",
    limit: Limit = paging.DEFAULT_LIMIT,
    cursor: Cursor = "",
) -> Page[LetterBody]:
    """List dead letters, the oldest first."""
    key = paging.decode(cursor, int, int)
    after = (key[0], key[1]) if key else None
    query = _query(where, reason, message)
    found = letter_actions.page(call.services, call.actor, query, limit, after)
    following = paging.encode(found.next_key)
    paging.link_next(request, response, following)
    return Page(items=[_body(each) for each in found.items], next=following)


@router.get("/groups")
def list_groups(
    call: Reading,
    where: WhereQuery = "",
    reason: WantedReason = None,
    message: WantedMessage = "",
    by: GroupBy = GroupBy.CAUSE,
) -> GroupList:
    """List groups of dead letters with one cause, or what `by` says, the largest first."""
    found = letter_actions.groups(call.services, call.actor, _query(where, reason, message), by)
    items = [GroupBody.model_validate(each, from_attributes=True) for each in found]
    return GroupList(items=items, total=sum(each.letters for each in found))


@router.get("/{target_id}")
def show_letter(call: Reading, target_id: TargetId) -> LetterDetails:
    """Show the dead letter of a target, and what to do about it."""
    named = letter_actions.of_target(call.services, call.actor, target_id)
    shown = shown_letters.letter(named, event_publisher.now_ms())
    advice = shown_letters.advice(named)
    hint = api_hints.for_api(advice["hint"], target_id)
    return LetterDetails(**_body(shown).model_dump(), meaning=advice["meaning"], hint=hint)


@router.post("/requeue", responses=problems.CHANGING)
def requeue_letters(call: Operating, bulk: LettersRequest) -> RequeuedBody:
    """Poll the targets of all dead letters that match, before routine polls."""
    letters, subject = _selected(call, bulk)
    if bulk.dry_run:
        return RequeuedBody(**_matches(letters, dry_run=True))
    action = f"requeue {letter_actions.spread_text(len(letters))}"
    bulk_confirmation.refuse_unconfirmed(action, len(letters), bulk.confirm)
    return _requeue(call, letters, subject)


@router.post("/drop", responses=problems.CHANGING)
def drop_letters(call: Editing, bulk: LettersRequest) -> DroppedBody:
    """Disable the targets of all dead letters that match, and remove the letters."""
    letters, subject = _selected(call, bulk)
    if bulk.dry_run:
        return DroppedBody(**_matches(letters, dry_run=True))
    targets = formatting.counted(len(letters), "target")
    action = f"disable {targets} and drop as many dead letters"
    bulk_confirmation.refuse_unconfirmed(action, len(letters), bulk.confirm)
    return _drop(call, letters, subject)


@router.post("/{target_id}/requeue", responses=problems.CHANGING)
def requeue_letter(call: Operating, target_id: TargetId) -> RequeuedBody:
    """Poll the target of a dead letter now. A success clears the letter."""
    named = letter_actions.of_target(call.services, call.actor, target_id)
    return _requeue(call, [named], shown_letters.full_name(named))


@router.post("/{target_id}/drop", responses=problems.CHANGING)
def drop_letter(call: Editing, target_id: TargetId) -> DroppedBody:
    """Disable the target of a dead letter, and remove the letter."""
    named = letter_actions.of_target(call.services, call.actor, target_id)
    return _drop(call, [named], shown_letters.full_name(named))


def _query(where: str, reason: Reason | None, message: str) -> LetterQuery:
    parsed = target_ids.parsed(where)
    return LetterQuery(reason.value if reason else "", parsed, message=message)


def _selected(call: Call, bulk: LettersRequest) -> tuple[list[Named], str]:
    query = bulk.query()
    found = letter_actions.selected(call.services, call.actor, query)
    return found, letter_actions.text(query)


def _requeue(call: Call, letters: Sequence[Named], subject: str) -> RequeuedBody:
    done = letter_actions.requeue(call.services, call.actor, letters, subject)
    ticket = poll_wait.ticket_of(call, done.ids, done.requested_ms)
    shown = _matches(letters, dry_run=False)
    return RequeuedBody(**shown, **done.counts(), ticket=ticket, note=done.note)


def _drop(call: Call, letters: Sequence[Named], subject: str) -> DroppedBody:
    done = letter_actions.drop(call.services, call.author, call.actor, letters, subject)
    shown = _matches(letters, dry_run=False)
    return DroppedBody(**shown, dropped=done.dropped, note=done.note)


def _matches(letters: Sequence[Named], dry_run: bool) -> dict[str, Any]:
    names = [shown_letters.full_name(each) for each in letters]
    return bulk_bodies.matched(names, dry_run)


def _body(shown: ShownLetter) -> LetterBody:
    return LetterBody.model_validate(shown, from_attributes=True)
