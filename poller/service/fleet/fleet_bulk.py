"""Actions on all devices that a filter selects, for the pages: planned, confirmed, then done.

Each action is that of the API and of the command line; nothing is decided here a second time.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from poller import errors
from poller.db.inventory.inventory_feed import Author
from poller.domain.access.actor import Actor
from poller.domain.access.scopes import Scope
from poller.domain.inventory import target_filter
from poller.domain.inventory.target_filter import TargetFilter
from poller.presentation import formatting
from poller.service import bulk_confirmation
from poller.service.inventory import device_actions, device_bulk
from poller.service.operations import breaker_actions, poll_actions, target_choice
from poller.service.operations.breaker_actions import Pause

if TYPE_CHECKING:
    from poller.bootstrap import Services

#: Targets that one request polls, as many as a ticket has room for.
MOST_POLLS = 1_000
#: Devices whose enabling or disabling can be taken back by name.
MOST_UNDONE = 250
USUAL_PAUSE_S = 1_800.0


class Action(enum.StrEnum):
    """An act on all that match."""

    POLL = "poll"
    RESET = "reset"
    PAUSE = "pause"
    ENABLE = "enable"
    DISABLE = "disable"

    @property
    def scope(self) -> Scope:
        return Scope.INVENTORY if self in (Action.ENABLE, Action.DISABLE) else Scope.OPERATE

    @property
    def words(self) -> str:
        """What it does to others again, as the way back of an action."""
        return "resume them" if self is Action.RESET else f"{self.value} them again"


@dataclass(frozen=True, slots=True)
class FleetDone:
    """The result in words; a ticket of polls; the action and filter that take it back."""

    text: str
    ticket: str = ""
    undo: Action | None = None
    undo_where: str = ""


@dataclass(frozen=True, slots=True)
class FleetPlan:
    """The plan of a bulk act: how many, and which."""

    action: Action
    phrase: str  # `disable 42 devices`
    names: Sequence[str]
    carry_out: Callable[[], FleetDone]

    def confirmed(self, number: int | None) -> FleetDone:
        """Do it. Raises NotConfirmed if another number matches by now."""
        bulk_confirmation.refuse_unconfirmed(self.phrase, len(self.names), number, free=0)
        return self.carry_out()


def plan(
    services: Services,
    author: Author,
    action: Action,
    wanted: TargetFilter,
    length_s: float = USUAL_PAUSE_S,
) -> FleetPlan:
    """Plan an action; `length_s` is that of a pause.

    Raises NotAllowed, NotFound if nothing matches, InvalidInput, StoreError.
    """
    actor = _actor(author)
    actor.require(action.scope)
    if action is Action.POLL:
        return _polls(services, actor, wanted)
    if action is Action.RESET:
        return _resets(services, actor, wanted)
    if action is Action.PAUSE:
        return _pauses(services, actor, wanted, length_s)
    return _switches(services, author, action, wanted)


def _actor(author: Author) -> Actor:
    if author.actor is None:
        raise errors.NotLoggedIn("this needs a login", hint="open the page again")
    return author.actor


def _polls(services: Services, actor: Actor, wanted: TargetFilter) -> FleetPlan:
    chosen = poll_actions.matching_enabled(services, actor, wanted)
    if len(chosen) > MOST_POLLS:
        raise errors.InvalidInput(
            f"{len(chosen):,} targets match, and one request polls {MOST_POLLS:,} at most",
            hint="narrow the filter",
        )
    subject = target_filter.text(wanted)

    def carry_out() -> FleetDone:
        asked = poll_actions.request(services, actor, chosen, subject)
        ticket = poll_actions.keep_ticket(services, actor, asked.ids, asked.requested_ms)
        targets = formatting.counted(len(asked.ids), "target")
        return FleetDone(f"{targets} will be polled at once. {asked.note}".strip(), ticket or "")

    phrase = f"poll {formatting.counted(len(chosen), 'target')} now"
    names = target_choice.full_names(chosen.values())
    return FleetPlan(Action.POLL, phrase, names, carry_out)


def _resets(services: Services, actor: Actor, wanted: TargetFilter) -> FleetPlan:
    chosen = target_choice.matching(services, actor, wanted)

    def carry_out() -> FleetDone:
        done = breaker_actions.reset(services, actor, chosen, target_filter.text(wanted))
        breaker_actions.refuse_unsettled(done)
        reset = formatting.counted(done.reset, "breaker")
        closed = formatting.exact(done.closed_already)
        return FleetDone(f"{reset} reset, {closed} were closed already. {done.note}".strip())

    phrase = f"reset the breakers of {formatting.counted(len(chosen), 'target')}"
    names = target_choice.full_names(chosen.values())
    return FleetPlan(Action.RESET, phrase, names, carry_out)


def _pauses(services: Services, actor: Actor, wanted: TargetFilter, length_s: float) -> FleetPlan:
    """Open breakers by hand: the targets are not polled until then, except on demand."""
    chosen = target_choice.matching(services, actor, wanted)
    subject = target_filter.text(wanted)

    def carry_out() -> FleetDone:
        done = breaker_actions.open_by_hand(services, actor, chosen, Pause(length_s), subject)
        targets = formatting.counted(done.opened, "target")
        is_one = done.opened == 1
        until = f"{done.until:%Y-%m-%d %H:%M:%S} UTC, except on demand"
        text = f"{targets} {'is' if is_one else 'are'} not polled until {until}. {done.note}"
        return FleetDone(text.strip(), undo=Action.RESET, undo_where=subject)

    phrase = f"pause {formatting.counted(len(chosen), 'target')}"
    names = target_choice.full_names(chosen.values())
    return FleetPlan(Action.PAUSE, phrase, names, carry_out)


def _switches(
    services: Services, author: Author, action: Action, wanted: TargetFilter
) -> FleetPlan:
    """Enable or disable devices. Few of them can be taken back: exactly those that changed."""
    enabled, actor = action is Action.ENABLE, _actor(author)
    planned = device_bulk.plan_edit(services, author, wanted, {"enabled": enabled})

    def carry_out() -> FleetDone:
        changing = _changing(services, actor, planned.names, enabled)
        done = planned.carry_out()
        changed = formatting.counted(done.changed, "device")
        kept = done.matched - done.changed
        text = f"{changed} {action.value}d"
        if kept:
            text += f"; {formatting.exact(kept)} were {action.value}d before"
        undo = Action.DISABLE if enabled else Action.ENABLE
        if not 0 < len(changing) <= MOST_UNDONE:
            return FleetDone(f"{text}.")
        undo_where = target_filter.text(TargetFilter(names=tuple(changing)))
        return FleetDone(f"{text}.", undo=undo, undo_where=undo_where)

    phrase = f"{action.value} {formatting.counted(len(planned.names), 'device')}"
    return FleetPlan(action, phrase, planned.names, carry_out)


def _changing(services: Services, actor: Actor, names: Sequence[str], enabled: bool) -> list[str]:
    """The devices that the change is for, unless they are too many to be taken back."""
    if len(names) > MOST_UNDONE:
        return []
    wanted = TargetFilter(names=tuple(names))
    found = device_actions.page(services, actor, wanted, len(names), fill=True)
    return [device.name for device in found.devices if device.enabled != enabled]
