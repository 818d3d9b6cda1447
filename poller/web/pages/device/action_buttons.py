"""The actions on a device and its targets that its reader may do now, each with its command.

An action that is not in this list is refused by the server all the same.
"""

from __future__ import annotations

import enum
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from poller.db.inventory.targets import Target
from poller.domain.access.actor import Actor
from poller.domain.access.scopes import Scope
from poller.presentation.device_state import DeviceState
from poller.state.board.breakers import BoardTarget


class Act(enum.StrEnum):
    """An action, as its form sends it."""

    POLL = "poll"
    RESUME = "resume"
    RESET = "reset"
    REQUEUE = "requeue"
    DROP = "drop"
    ENABLE = "enable"
    DISABLE = "disable"

    @property
    def scope(self) -> Scope:
        """The right that the action needs."""
        return Scope.INVENTORY if self in _EDITS else Scope.OPERATE


_EDITS = frozenset((Act.DROP, Act.ENABLE, Act.DISABLE))
_TITLES = {
    Act.POLL: "Poll now",
    Act.RESUME: "Resume",
    Act.RESET: "Reset breaker",
    Act.REQUEUE: "Requeue",
    Act.DROP: "Drop",
    Act.ENABLE: "Enable",
    Act.DISABLE: "Disable",
}
_EXPLANATIONS = {
    Act.POLL: "polls before routine polls",
    Act.RESUME: "ends the pause: polled as usual again",
    Act.RESET: "closes the breaker that failures opened: polled at the next slot",
    Act.REQUEUE: "polls the dead letter now; a success clears it",
    Act.DROP: "removes the dead letter and disables the target",
    Act.ENABLE: "polls again",
    Act.DISABLE: "ends polling until it is enabled again",
}


@dataclass(frozen=True, slots=True)
class ActionButton:
    """One action. An empty target: all targets of the device."""

    act: Act
    target: str
    command: str  # the same in a terminal

    @property
    def title(self) -> str:
        return _TITLES[self.act]

    @property
    def explanation(self) -> str:
        return _EXPLANATIONS[self.act]


def of_device(
    device: str, state: DeviceState, targets: Sequence[Target], actor: Actor
) -> list[ActionButton]:
    """Return the actions on the whole device."""
    found = list(_of_device(state, targets))
    return [ActionButton(act, "", command(act, device, "")) for act in found if _may(actor, act)]


def of_target(target: Target, state: DeviceState, actor: Actor) -> list[ActionButton]:
    """Return the actions on one target."""
    found = _of_target(target, state, state.on_board.get(target.id))
    return [
        ActionButton(act, target.name, command(act, target.device, target.name))
        for act in found
        if _may(actor, act)
    ]


def may_pause(target: Target, state: DeviceState, actor: Actor) -> bool:
    """Whether a target is polled, so that it can be paused."""
    on_board = state.on_board.get(target.id)
    is_polled = state.enabled and target.enabled and on_board is not None
    return is_polled and not (on_board and on_board.opening) and actor.may(Scope.OPERATE)


def command(act: Act, device: str, target: str) -> str:
    """Return the command that does the same."""
    name = shlex.quote(f"{device}/{target}" if target else device)
    if act is Act.POLL:
        return f"poller poll {name}"
    if act in (Act.RESUME, Act.RESET):
        return f"poller breaker reset {name}"
    if act is Act.REQUEUE:
        return f"poller deadletter requeue {name}"
    if act is Act.DROP:
        return f"poller deadletter drop {name}"
    noun = "target" if target else "device"
    return f"poller {noun} edit {name} --{act.value}"


def _may(actor: Actor, act: Act) -> bool:
    return actor.may(act.scope)


def _of_device(state: DeviceState, targets: Sequence[Target]) -> Iterator[Act]:
    if not state.enabled:
        yield Act.ENABLE
        return
    on_board = [state.on_board[each.id] for each in targets if each.id in state.on_board]
    if on_board:
        yield Act.POLL
    if any(each.opening for each in on_board):
        yield Act.RESUME
    if any(each.is_open and not each.opening for each in on_board):
        yield Act.RESET
    if any(each.status.reason for each in on_board):
        yield Act.REQUEUE
    yield Act.DISABLE


def _of_target(target: Target, state: DeviceState, on_board: BoardTarget | None) -> Iterator[Act]:
    if not state.enabled:
        return
    if not target.enabled:
        yield Act.ENABLE
        return
    if on_board is not None:
        yield Act.POLL
        if on_board.is_open:
            yield Act.RESUME if on_board.opening else Act.RESET
        if on_board.status.reason:
            yield Act.REQUEUE
            yield Act.DROP
    yield Act.DISABLE
