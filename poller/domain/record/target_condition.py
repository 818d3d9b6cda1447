"""The condition of a target: the parts of its status that a filter can select by.

A condition is read without the rest of the status, from the beginning of the stored text: a filter
may look at thousands of them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from poller.domain.inventory.target_filter import TargetFilter, TargetState
from poller.domain.record.overview import State
from poller.domain.record.target_status import OPEN, REASONS, STATES


class Condition(NamedTuple):
    state: State = State.UNKNOWN
    is_open: bool = False  # the breaker, because of failures
    is_parked: bool = False
    code: str = ""  # of the last poll


#: The index of the code among the values of a stored status.
_CODE = 6


def of_status(text: str) -> Condition:
    """Return the condition of a stored status, see target_status.py; "" is a target that was
    never polled.
    """
    return of_mark(*mark_and_code(text))


def mark_and_code(text: str) -> tuple[str, str]:
    """Return the mark and the error code of a stored status, both "" where there are none."""
    mark, _, rest = text.partition("[")
    values = rest.split(",", _CODE + 1)
    code = values[_CODE].strip('"]') if len(values) > _CODE else ""
    return mark, code


@lru_cache(maxsize=1024)  # the marks and codes are few
def of_mark(mark: str, code: str = "") -> Condition:
    """Return the condition of a mark and an error code."""
    state = STATES.get(mark[:1], State.UNKNOWN)
    return Condition(state, OPEN in mark, mark[-1:] in REASONS, code)


def states(condition: Condition, *, is_enabled: bool, is_opened: bool) -> set[TargetState]:
    """Return every state of a target. A disabled target has no other.

    `is_opened` says whether an operator keeps the breaker open.
    """
    if not is_enabled:
        return {TargetState.DISABLED}

    found = {TargetState(condition.state.value)}
    if condition.is_open or is_opened:
        found.add(TargetState.OPEN)
    if condition.is_parked:
        found.add(TargetState.PARKED)
    return found


def has_state(
    wanted: TargetFilter, condition: Condition, *, is_enabled: bool = True, is_opened: bool = False
) -> bool:
    """Whether a target has one of the states of a filter."""
    if not wanted.states:
        return True
    found = states(condition, is_enabled=is_enabled, is_opened=is_opened)
    return not found.isdisjoint(wanted.states)


def fits(wanted: TargetFilter, condition: Condition, *, is_enabled: bool, is_opened: bool) -> bool:
    """Whether a target has one of the states and one of the error codes of a filter."""
    if wanted.codes and condition.code not in wanted.codes:
        return False
    return has_state(wanted, condition, is_enabled=is_enabled, is_opened=is_opened)
