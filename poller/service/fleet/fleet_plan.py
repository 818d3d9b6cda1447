"""The plan of an act on many devices: how many, which, and what to do when it is confirmed."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from poller import errors
from poller.db.inventory.inventory_feed import Author
from poller.domain.access.actor import Actor
from poller.domain.access.scopes import Scope
from poller.service import bulk_confirmation

#: Hears how many are done so far.
Tell = Callable[[int], None]


class Action(enum.StrEnum):
    """An act on all that match."""

    POLL = "poll"
    PAUSE = "pause"
    RESUME = "resume"
    RESET = "reset"
    REQUEUE = "requeue"
    ENABLE = "enable"
    DISABLE = "disable"
    INTERVAL = "interval"
    TAGS = "tags"
    CREDENTIAL = "credential"
    DOMAIN = "domain"
    UNDO = "undo"

    @property
    def scope(self) -> Scope:
        """The right that the act needs. Whoever takes an act back needs the right to that act."""
        return Scope.OPERATE if self in _ON_THE_BOARD else Scope.INVENTORY

    @property
    def fields(self) -> Sequence[str]:
        """The values that the act needs, by their names."""
        return _FIELDS.get(self, ())


_ON_THE_BOARD = frozenset(
    (Action.POLL, Action.PAUSE, Action.RESUME, Action.RESET, Action.REQUEUE, Action.UNDO)
)
_FIELDS: Mapping[Action, Sequence[str]] = {
    Action.PAUSE: ("length", "reason"),
    Action.INTERVAL: ("interval",),
    Action.TAGS: ("add", "remove"),
    Action.CREDENTIAL: ("credential",),
    Action.DOMAIN: ("requires",),
}
#: Acts that a button is enough for, however many they are for.
_MILD = frozenset((Action.POLL, Action.REQUEUE, Action.UNDO))


@dataclass(frozen=True, slots=True)
class FleetDone:
    """The result in words; a ticket of polls; the name under which it can be taken back."""

    text: str
    ticket: str = ""
    undo: str = ""


@dataclass(frozen=True, slots=True)
class FleetPlan:
    """A checked act. `carry_out` does it, and tells how far it is."""

    action: Action
    phrase: str  # `disable 42 devices`
    names: Sequence[str]
    carry_out: Callable[[Tell], FleetDone]
    notes: Sequence[str] = ()  # what changes, and whether it can be taken back

    @property
    def is_typed(self) -> bool:
        """Whether a person types the number: a button is too easy for so many."""
        return len(self.names) > bulk_confirmation.MANY and self.action not in _MILD

    def confirmed(self, number: int | None, tell: Tell = lambda done: None) -> FleetDone:
        """Do it. Raises NotConfirmed if another number matches by now."""
        self.refuse_unconfirmed(number)
        return self.carry_out(tell)

    def refuse_unconfirmed(self, number: int | None) -> None:
        """Raise NotConfirmed if another number matches by now."""
        bulk_confirmation.refuse_unconfirmed(self.phrase, len(self.names), number, free=0)


def actor_of(author: Author) -> Actor:
    """Return who acts. Raises NotLoggedIn."""
    if author.actor is None:
        raise errors.NotLoggedIn("this needs a login", hint="open the page again")
    return author.actor
