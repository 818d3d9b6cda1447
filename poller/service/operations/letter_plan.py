"""Actions on many dead letters, for the pages: planned, confirmed, then done; and the way back.

Each action is that of the API and of the command line; nothing is decided here a second time.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from poller import errors
from poller.db.inventory import bulk_edits
from poller.db.inventory.inventory_feed import Author
from poller.db.record.dead_letter_rows import Named
from poller.domain.access.actor import Actor
from poller.domain.access.scopes import Scope
from poller.presentation import formatting
from poller.service import bulk_confirmation
from poller.service.inventory import collector_checks
from poller.service.operations import letter_actions, poll_actions, shown_letters, target_choice
from poller.service.operations.letter_actions import LetterQuery

if TYPE_CHECKING:
    from poller.bootstrap import Services

#: Letters of one request.
MOST_LETTERS = 10_000
#: Requeued letters whose results can be watched, as many as a ticket has room for.
MOST_WATCHED = 1_000
#: Dropped letters whose targets can be enabled again by one button.
MOST_UNDONE = 250


class Action(enum.StrEnum):
    """An act on all letters that match."""

    REQUEUE = "requeue"
    DROP = "drop"

    @property
    def scope(self) -> Scope:
        return Scope.OPERATE if self is Action.REQUEUE else Scope.INVENTORY


@dataclass(frozen=True, slots=True)
class LettersDone:
    """The result in words; a ticket of polls, or the ids of the targets to enable again."""

    text: str
    ticket: str = ""
    undo_ids: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class LetterPlan:
    """How many letters an action is for, and which. `is_typed`: a person types the number."""

    action: Action
    phrase: str  # `requeue 42 dead letters`
    letters: Sequence[Named]

    @property
    def names(self) -> list[str]:
        return [shown_letters.full_name(named) for named in self.letters]

    @property
    def is_typed(self) -> bool:
        return self.action is Action.DROP and len(self.letters) > bulk_confirmation.MANY


def plan(services: Services, actor: Actor, action: Action, query: LetterQuery) -> LetterPlan:
    """Plan an action. Raises NotAllowed, NotFound if nothing matches, InvalidInput, StoreError."""
    actor.require(action.scope)
    found = letter_actions.selected(services, actor, query)
    number = len(found)
    if number > MOST_LETTERS:
        raise errors.InvalidInput(
            f"{number:,} dead letters match, and one request takes {MOST_LETTERS:,} at most",
            hint="narrow the filter, or use the command",
        )
    if action is Action.REQUEUE:
        return LetterPlan(action, f"requeue {letter_actions.spread_text(number)}", found)
    targets = formatting.counted(number, "target")
    return LetterPlan(action, f"disable {targets} and drop as many dead letters", found)


def carry_out(
    services: Services, author: Author, planned: LetterPlan, subject: str, number: int | None
) -> LettersDone:
    """Do what was planned. Raises NotConfirmed if another number matches by now, StoreError."""
    count = len(planned.letters)
    bulk_confirmation.refuse_unconfirmed(planned.phrase, count, number, free=0)
    if planned.action is Action.REQUEUE:
        return requeue(services, _actor(author), planned.letters, subject)
    return _drop(services, author, planned.letters, subject)


def take_back(services: Services, author: Author, ids: Sequence[int]) -> int:
    """Enable the targets of dropped letters again. Returns how many.

    Raises NotAllowed, NotFound for a target that is gone or of another site, StoreError.
    """
    actor = _actor(author)
    actor.require(Scope.INVENTORY)
    chosen = target_choice.with_ids(services, actor, ids)
    draft_of = partial(collector_checks.target_changes, services, {"enabled": True}, None)
    subject = f"{formatting.counted(len(chosen), 'dropped dead letter')} taken back"
    return bulk_edits.edit_targets(services.engine, list(chosen), draft_of, author, subject)


def requeue(
    services: Services, actor: Actor, letters: Sequence[Named], subject: str
) -> LettersDone:
    """Requeue letters that were confirmed, and keep a ticket of their polls. Raises StoreError."""
    done = letter_actions.requeue(services, actor, letters, subject)
    text = f"{formatting.counted(len(done.letters), 'dead letter')} requeued."
    if done.opened_by_hand:
        text += f" Left alone, because their breaker was opened by hand: {done.opened_by_hand:,}."
    if done.not_on_board:
        text += f" Not on the board: {done.not_on_board:,}."
    if done.note:
        text += f" {done.note[:1].upper()}{done.note[1:]}."
    ticket = ""
    if 0 < len(done.ids) <= MOST_WATCHED:
        ticket = poll_actions.keep_ticket(services, actor, done.ids, done.requested_ms)
    return LettersDone(text, ticket)


def _drop(
    services: Services, author: Author, letters: Sequence[Named], subject: str
) -> LettersDone:
    done = letter_actions.drop(services, author, _actor(author), letters, subject)
    dropped = formatting.counted(done.dropped, "dead letter")
    text = f"{dropped} dropped; as many targets are disabled."
    if done.note:
        text += f" {done.note[:1].upper()}{done.note[1:]}."
    ids = [named.letter.target_id for named in letters]
    return LettersDone(text, undo_ids=ids if len(ids) <= MOST_UNDONE else ())


def _actor(author: Author) -> Actor:
    if author.actor is None:
        raise errors.NotLoggedIn("this needs a login", hint="open the page again")
    return author.actor
