"""One step of an action on dead letters as texts: what would be done, or what was done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from poller import errors
from poller.domain.inventory import target_filter
from poller.presentation import formatting
from poller.service.operations import letter_actions
from poller.service.operations.letter_actions import LetterQuery
from poller.service.operations.letter_plan import Action, LetterPlan, LettersDone
from poller.web.pages.work import letters_query

#: Letters that a question names.
SAMPLES = 10
_UNDO = {
    Action.REQUEUE: "This cannot be undone: the polls are made. A success clears the letter, and a "
    "failure keeps it.",
    Action.DROP: "The targets are not polled until they are enabled again.",
}


@dataclass(frozen=True, slots=True)
class Asked:
    """What somebody asks for, and when."""

    plan: LetterPlan
    wanted: LetterQuery
    now_ms: int


@dataclass(frozen=True, slots=True)
class LetterActionView:
    """One step of an action."""

    as_of: str
    title: str
    text: str = ""  # what was done
    action: str = ""
    subject: str = ""
    where: str = ""
    reason: str = ""
    message: str = ""
    ids: Sequence[int] = ()  # of marked letters
    number: int = 0
    is_typed: bool = False
    samples: Sequence[str] = ()
    more: int = 0
    consequence: str = ""
    command: str = ""
    dry_run: str = ""
    refused: errors.PollerError | None = None
    ticket: str = ""
    undo_ids: Sequence[int] = ()

    @property
    def is_done(self) -> bool:
        return bool(self.text)


def plan_view(asked: Asked, refused: errors.PollerError | None = None) -> LetterActionView:
    """The question: how many, which, and what cannot be undone."""
    plan, wanted = asked.plan, asked.wanted
    ids = [named.letter.target_id for named in plan.letters] if wanted.named else []
    names = plan.names
    return LetterActionView(
        as_of=formatting.instant(asked.now_ms),
        title=f"{plan.phrase}?",
        action=plan.action,
        subject=letter_actions.text(wanted),
        where=target_filter.text(wanted.wanted),
        reason=wanted.reason,
        message=wanted.message,
        ids=ids,
        number=len(names),
        is_typed=plan.is_typed,
        samples=names[:SAMPLES],
        more=max(0, len(names) - SAMPLES),
        consequence=_UNDO[plan.action],
        command=letters_query.command(plan.action, wanted),
        dry_run=letters_query.command(plan.action, wanted, ["--dry-run"]),
        refused=refused,
    )


def done_view(asked: Asked, done: LettersDone) -> LetterActionView:
    """The result, with a link to the polls or a way back."""
    return LetterActionView(
        as_of=formatting.instant(asked.now_ms),
        title="Done",
        text=done.text,
        consequence=_UNDO[asked.plan.action],
        ticket=done.ticket,
        undo_ids=done.undo_ids,
    )


def taken_back(number: int, now_ms: int) -> LetterActionView:
    """The result of the way back."""
    targets = formatting.counted(number, "target")
    return LetterActionView(
        as_of=formatting.instant(now_ms),
        title="Taken back",
        text=f"{targets} enabled again.",
        consequence="They are polled at their own interval; one that fails as before becomes a "
        "dead letter again.",
    )
