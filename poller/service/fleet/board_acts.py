"""Acts on many targets that happen on the board: poll, pause, resume, reset, requeue."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sized
from typing import TYPE_CHECKING

from poller import errors
from poller.domain.access.actor import Actor
from poller.domain.inventory import duration, target_filter
from poller.domain.inventory.target_filter import TargetFilter
from poller.presentation import formatting
from poller.service.fleet import act_undo
from poller.service.fleet.fleet_plan import Action, FleetDone, FleetPlan, Tell
from poller.service.operations import (
    breaker_actions,
    letter_actions,
    letter_plan,
    poll_actions,
    target_choice,
)
from poller.service.operations.breaker_actions import Pause
from poller.service.operations.letter_actions import LetterQuery
from poller.service.operations.target_choice import Choice

if TYPE_CHECKING:
    from poller.bootstrap import Services

Planned = Callable[["Services", Actor, TargetFilter, Mapping[str, str]], FleetPlan]

#: Targets that one request polls, as many as a ticket has room for.
MOST_POLLS = 1_000


def _polls(
    services: Services, actor: Actor, wanted: TargetFilter, fields: Mapping[str, str]
) -> FleetPlan:
    chosen = poll_actions.matching_enabled(services, actor, wanted)
    if len(chosen) > MOST_POLLS:
        raise errors.InvalidInput(
            f"{len(chosen):,} targets match, and one request polls {MOST_POLLS:,} at most",
            hint="narrow the filter",
        )

    def carry_out(tell: Tell) -> FleetDone:
        asked = poll_actions.request(services, actor, chosen, target_filter.text(wanted))
        ticket = poll_actions.keep_ticket(services, actor, asked.ids, asked.requested_ms)
        text = f"{_targets(asked.ids)} will be polled at once. {asked.note}".strip()
        return FleetDone(text, ticket or "")

    phrase = f"poll {_targets(chosen)} now"
    return FleetPlan(Action.POLL, phrase, _names(chosen), carry_out)


def _pauses(
    services: Services, actor: Actor, wanted: TargetFilter, fields: Mapping[str, str]
) -> FleetPlan:
    pause = _pause(fields)
    chosen = target_choice.matching(services, actor, wanted)
    disabled = sum(not each.enabled for each in chosen.values())

    def carry_out(tell: Tell) -> FleetDone:
        subject = target_filter.text(wanted)
        done = breaker_actions.open_by_hand(services, actor, chosen, pause, subject, tell)
        until = formatting.instant(round(done.until.timestamp() * 1000))
        text = f"{formatting.counted(done.opened, 'target')} paused until {until}. {done.note}"
        undo = act_undo.keep_pause(services, actor, list(chosen), done.since_ms)
        return FleetDone(text.strip(), undo=undo)

    length = duration.format_ms(round(pause.length_s * 1000))
    phrase = f"pause {_targets(chosen)} for {length}"
    notes = ["Paused, they are not polled until the end, except on demand."]
    if len(chosen) > act_undo.MOST:
        notes.append(act_undo.TOO_MANY)
    if disabled:
        are = "is" if disabled == 1 else "are"
        notes.append(f"{formatting.exact(disabled)} of them {are} disabled, and not polled anyway.")
    return FleetPlan(Action.PAUSE, phrase, _names(chosen), carry_out, notes)


def _pause(fields: Mapping[str, str]) -> Pause:
    """The pause of a form. Raises InvalidInput, which names the field."""
    try:
        length_ms = duration.parse_ms(fields.get("length", ""))
    except errors.InvalidInput as error:
        message = f"length: {error.message}"
        raise errors.InvalidInput(message, hint=error.hint, field="length") from None
    pause = Pause(length_ms / 1000, fields.get("reason", ""))
    pause.check(needs_reason=True)
    return pause


def _resumes(
    services: Services, actor: Actor, wanted: TargetFilter, fields: Mapping[str, str]
) -> FleetPlan:
    found = target_choice.matching(services, actor, wanted)
    chosen = breaker_actions.require_paused(services, found)
    return _reset_plan(services, actor, chosen, wanted, Action.RESUME)


def _resets(
    services: Services, actor: Actor, wanted: TargetFilter, fields: Mapping[str, str]
) -> FleetPlan:
    chosen = target_choice.matching(services, actor, wanted)
    return _reset_plan(services, actor, chosen, wanted, Action.RESET)


def _reset_plan(
    services: Services, actor: Actor, chosen: Choice, wanted: TargetFilter, action: Action
) -> FleetPlan:
    def carry_out(tell: Tell) -> FleetDone:
        subject = target_filter.text(wanted)
        done = breaker_actions.reset(services, actor, chosen, subject, tell)
        breaker_actions.refuse_unsettled(done)
        reset = formatting.counted(done.reset, "breaker")
        text = f"{reset} reset, {formatting.exact(done.closed_already)} were closed already."
        if done.site_dark:
            text += f" {_of_dark_sites(done.site_dark)}"
        return FleetDone(f"{text} {done.note}".strip())

    phrase = f"reset the breakers of {_targets(chosen)}"
    if action is Action.RESUME:
        phrase = f"resume {_targets(chosen)} that were paused by hand"
    return FleetPlan(action, phrase, _names(chosen), carry_out)


def _of_dark_sites(number: int) -> str:
    wait = "waits" if number == 1 else "wait"
    return f"{formatting.counted(number, 'target')} of a dark site still {wait} for it."


def _requeues(
    services: Services, actor: Actor, wanted: TargetFilter, fields: Mapping[str, str]
) -> FleetPlan:
    every = wanted == TargetFilter(names=("*",))
    query = LetterQuery() if every else LetterQuery(wanted=wanted)
    planned = letter_plan.plan(services, actor, letter_plan.Action.REQUEUE, query)

    def carry_out(tell: Tell) -> FleetDone:
        subject = letter_actions.text(query)
        done = letter_plan.requeue(services, actor, planned.letters, subject)
        return FleetDone(done.text, done.ticket)

    notes = ["A success clears a letter, and a failure keeps it. The polls cannot be taken back."]
    return FleetPlan(Action.REQUEUE, planned.phrase, planned.names, carry_out, notes)


def _targets(chosen: Sized) -> str:
    return formatting.counted(len(chosen), "target")


def _names(chosen: Choice) -> list[str]:
    return target_choice.full_names(chosen.values())


#: The acts of this module.
PLANS: Mapping[Action, Planned] = {
    Action.POLL: _polls,
    Action.PAUSE: _pauses,
    Action.RESUME: _resumes,
    Action.RESET: _resets,
    Action.REQUEUE: _requeues,
}
