"""What the board remembers of a target between polls, and how one more outcome changes it.

The text starts with its mark: a letter for the state, B if its breaker is open, and a letter for the reason if it is
a dead letter. So the board can count all three without reading on.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from poller.domain.failures import circuit_breaker
from poller.domain.failures.circuit_breaker import Breaker
from poller.domain.failures.dead_letter import Reason
from poller.domain.failures.outcome import Outcome, Result
from poller.domain.record.overview import State
from poller.domain.scheduling import interval
from poller.domain.scheduling.interval import Decision

LETTERS = {State.OK: "o", State.DEGRADED: "d", State.FAILING: "f", State.UNKNOWN: "u"}
STATES = {letter: state for state, letter in LETTERS.items()}
OPEN = "B"
REASONS = {
    "A": Reason.AUTH_FAILED,
    "N": Reason.NOT_POLLABLE,
    "Q": Reason.COLLECTOR_QUARANTINED,
    "L": Reason.OPEN_TOO_LONG,
}
_REASON_LETTERS = {reason: letter for letter, reason in REASONS.items()}


class Status(NamedTuple):
    state: State = State.UNKNOWN
    since_ms: int = 0  # of the state
    run_ms: int = 0  # plan time of the last run
    finished_ms: int = 0
    ok_ms: int = 0  # end of the last good run
    failures: int = 0  # in a row
    missed: int = 0  # slots skipped, ever
    code: str = ""
    message: str = ""
    decision: Decision | None = None  # the last one, of an adaptive target
    breaker: Breaker = circuit_breaker.CLOSED
    parked_ms: int = 0  # since when it is a dead letter; 0 = it is none
    reason: Reason | None = None  # why it is one

    @property
    def mark(self) -> str:
        reason = _REASON_LETTERS[self.reason] if self.reason else ""
        return LETTERS[self.state] + (OPEN if self.breaker.trips else "") + reason

    def pack(self) -> str:
        """Most have no error and no extras, and there are a million of them."""
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
        return self.mark + json.dumps(values, ensure_ascii=False, separators=(",", ":"))

    def _extras(self) -> dict[str, Any]:
        extras: dict[str, Any] = {"d": self.decision.pack()} if self.decision else {}
        if self.breaker.trips:
            extras["b"] = self.breaker.pack()
        if self.parked_ms:
            extras["p"] = self.parked_ms
        return extras


def steady(before: Status, after: Status) -> bool:
    """It was well and is well, so that the board counts it as before."""
    return before.mark == after.mark == LETTERS[State.OK]


def unpack(text: str) -> Status:
    """The stored text back to a status; a text that is not ours counts as never polled."""
    mark, bracket, rest = text.partition("[")
    state = STATES.get(mark[:1], State.UNKNOWN)
    if len(text) < 2:
        return Status(state)
    try:
        plain = json.loads(bracket + rest)
        if len(plain) > _WITH_EXTRAS:
            return Status()
        if not all(type(number) is int for number in plain[:6]):
            return Status()
        if len(plain) < _WITH_EXTRAS and len(mark) == 1:  # nearly all
            return Status(state, *plain)
        extras = plain.pop() if len(plain) == _WITH_EXTRAS else {}
        return Status(state, *plain)._replace(**_read(extras, mark))
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
        return Status()


def _read(extras: dict[str, Any], mark: str) -> dict[str, Any]:
    read: dict[str, Any] = {"parked_ms": int(extras.get("p", 0)), "reason": REASONS.get(mark[-1:])}
    if "d" in extras:
        read["decision"] = interval.unpack(extras["d"])
    if "b" in extras:
        read["breaker"] = circuit_breaker.unpack(extras["b"])
    return read


_STATES = {Result.OK: State.OK, Result.PARTIAL: State.DEGRADED}
#: Values of a status that has everything.
_WITH_EXTRAS = 9


def record(status: Status, outcome: Outcome, plan_ms: int, finished_ms: int, missed: int) -> Status:
    """The status after one more outcome; what was decided for the poll is not decided for the next one."""
    state = _STATES.get(outcome.result, State.FAILING)
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
    )
