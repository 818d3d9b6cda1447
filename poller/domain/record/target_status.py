"""The status of a target, which the board stores between polls.

The stored text starts with its mark: a letter for the state, B for an open breaker, C for a
confirmed failure, a letter for what the failure says about the device, and a letter for the reason
of a dead letter. The board counts by the mark and judges devices by it, without parsing the rest.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from poller.domain.failures import circuit_breaker, error_codes
from poller.domain.failures.circuit_breaker import Breaker
from poller.domain.failures.dead_letter import Reason
from poller.domain.failures.error_codes import Reach
from poller.domain.failures.outcome import Outcome, Result
from poller.domain.record.overview import State
from poller.domain.scheduling import interval
from poller.domain.scheduling.interval import Decision

LETTERS = {State.OK: "o", State.DEGRADED: "d", State.FAILING: "f", State.UNKNOWN: "u"}
STATES = {letter: state for state, letter in LETTERS.items()}
OPEN = "B"
CONFIRMED = "C"
#: A failing target without a letter responds, but not as it should.
REACHES = {Reach.SILENT: "s", Reach.ANSWERED: "", Reach.UNTOLD: "x"}
REASONS = {
    "A": Reason.AUTH_FAILED,
    "N": Reason.NOT_POLLABLE,
    "U": Reason.UNSUPPORTED,
    "K": Reason.COLLECTOR_CRASHED,
    "Q": Reason.COLLECTOR_QUARANTINED,
    "P": Reason.PROTOCOL_ERROR,
    "L": Reason.OPEN_TOO_LONG,
}
_REASON_LETTERS = {reason: letter for letter, reason in REASONS.items()}
_RESULT_STATES = {Result.OK: State.OK, Result.PARTIAL: State.DEGRADED}
#: The breaker as `pack` writes it.
_BREAKER = re.compile(r'"b":\[\d+,(\d+),\d+\]')
#: Values of a status with extras.
_WITH_EXTRAS = 9
#: One encoder for all: `json.dumps` would make one at every call.
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class Status(NamedTuple):
    """The status of one target. Instants are UTC milliseconds; 0: never."""

    state: State = State.UNKNOWN
    since_ms: int = 0  # of the state
    run_ms: int = 0  # plan time of the last run
    finished_ms: int = 0
    ok_ms: int = 0  # end of the last good run
    failures: int = 0  # in a row
    missed: int = 0  # missed slots, in total
    code: str = ""
    message: str = ""
    decision: Decision | None = None  # the last decision for an adaptive target
    breaker: Breaker = circuit_breaker.CLOSED
    parked_ms: int = 0  # since when the target is a dead letter; 0: it is none
    reason: Reason | None = None  # of the dead letter
    confirmed: bool = False  # the failure lasts, see domain/failures/confirmation.py
    #: The shape that was sent last and has not ended, if a sink takes ends of series; 0: none.
    shape: int = 0

    @property
    def mark(self) -> str:
        """The letters at the start of the stored text."""
        state = LETTERS[self.state]
        breaker = OPEN if self.breaker.trips else ""
        failure = self._failure_letters() if self.state is State.FAILING else ""
        reason = _REASON_LETTERS[self.reason] if self.reason else ""
        return state + breaker + failure + reason

    def _failure_letters(self) -> str:
        confirmed = CONFIRMED if self.confirmed else ""
        return confirmed + REACHES[self.reach]

    @property
    def reach(self) -> Reach:
        """The conclusion from the last poll about the device."""
        if self.state is State.FAILING:
            row = error_codes.TABLE.get(self.code)
            return row.reach if row else Reach.UNTOLD
        return Reach.UNTOLD if self.state is State.UNKNOWN else Reach.ANSWERED

    def pack(self) -> str:
        """Return the stored text, without code, message and extras where there are none."""
        values: list[Any] = [
            self.since_ms,
            self.run_ms,
            self.finished_ms,
            self.ok_ms,
            self.failures,
            self.missed,
        ]
        extras = self._extras()
        if self.code or extras:
            values += [self.code, self.message]
        if extras:
            values.append(extras)
        return self.mark + _encode(values)

    def _extras(self) -> dict[str, Any]:
        extras: dict[str, Any] = {}
        if self.decision:
            extras["d"] = self.decision.pack()
        if self.breaker.trips:
            extras["b"] = self.breaker.pack()
        if self.parked_ms:
            extras["p"] = self.parked_ms
        if self.shape:
            extras["s"] = self.shape
        return extras


#: The fields of a status between its message and its shape, without extras.
_NO_EXTRAS = Status()[9:-1]


def is_steady(before: Status, after: Status) -> bool:
    """Whether the target was ok and is ok, so that the counts of the board stay the same."""
    return before.mark == after.mark == LETTERS[State.OK]


def open_since_ms(text: str) -> int | None:
    """When the breaker in a stored text opened, without unpacking it; None if it is closed.

    A quote inside a message is escaped, so only the breaker itself has this form. 0: unknown.
    """
    if OPEN not in text.partition("[")[0]:
        return None
    found = _BREAKER.search(text)
    return int(found[1]) if found else 0


def unpack(text: str) -> Status:
    """Return the status of a stored text; any other text counts as never polled."""
    mark, bracket, rest = text.partition("[")
    state = STATES.get(mark[:1], State.UNKNOWN)
    if len(text) < 2:
        return Status(state)
    try:
        values = json.loads(bracket + rest)
        if len(values) > _WITH_EXTRAS:
            return Status()
        if not all(type(number) is int for number in values[:6]):
            return Status()
        if len(values) < _WITH_EXTRAS and len(mark) == 1:  # nearly all
            return Status(state, *values)
        extras = values.pop() if len(values) == _WITH_EXTRAS else {}
        if len(mark) == 1 and len(extras) == 1 and type(extras.get("s")) is int:
            return Status._make((state, *values, *_NO_EXTRAS, extras["s"]))
        return Status(state, *values)._replace(**_unpack_extras(extras, mark))
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
        return Status()


def finished_ms(text: str) -> int:
    """Return the end of the last poll in a stored text, without parsing the rest; 0: never."""
    parts = text.split(",", 3)
    return int(parts[2]) if len(parts) > 3 and parts[2].isdecimal() else 0


def ok_ms(text: str) -> int:
    """Return the end of the last good poll in a stored text, without parsing the rest; 0: never."""
    parts = text.split(",", 4)
    return int(parts[3]) if len(parts) > 4 and parts[3].isdecimal() else 0


def chosen_ms(text: str) -> int:
    """Return the interval that an adaptive target chose for itself; 0 for any other target."""
    if '"d":' not in text:
        return 0
    decision = unpack(text).decision
    return decision.chosen_ms if decision else 0


def is_failing(text: str) -> bool:
    """Whether the target of a stored text fails, without parsing the rest."""
    return text[:1] == LETTERS[State.FAILING]


def _unpack_extras(extras: dict[str, Any], mark: str) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "parked_ms": int(extras.get("p", 0)),
        "reason": REASONS.get(mark[-1:]),
        "confirmed": CONFIRMED in mark,
        "shape": int(extras.get("s", 0)),
    }
    if "d" in extras:
        fields["decision"] = interval.unpack(extras["d"])
    if "b" in extras:
        fields["breaker"] = circuit_breaker.unpack(extras["b"])
    return fields


def record(
    status: Status,
    outcome: Outcome,
    plan_ms: int,
    finished_ms: int,
    missed: int,
    shape: int = 0,
) -> Status:
    """Return the status after one more outcome, without a decision for the next poll.

    `shape` is the one that was sent and has not ended.
    """
    state = _RESULT_STATES.get(outcome.result, State.FAILING)
    return status._replace(
        state=state,
        since_ms=status.since_ms if state is status.state else finished_ms,
        run_ms=plan_ms,
        finished_ms=finished_ms,
        ok_ms=finished_ms if outcome.good else status.ok_ms,
        failures=0 if outcome.good else status.failures + 1,
        missed=status.missed + missed,
        code=outcome.error_code,
        message=outcome.message,
        decision=None,
        shape=shape,
    )
