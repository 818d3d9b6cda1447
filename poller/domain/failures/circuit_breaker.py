"""Shall a target that keeps failing be left alone for a while? Decides only; the board does the waiting.

Closed: polled as usual. Open: nobody asks it until its probe falls due. Half-open is that probe: a target is in one
place of the board, so there is exactly one in the whole cluster. A good answer closes it; a bad one doubles the wait.
"""

from __future__ import annotations

import enum
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from poller.domain.failures import backoff, error_codes
from poller.domain.failures.error_codes import BreakerRule


class Position(enum.StrEnum):
    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


@dataclass(frozen=True, slots=True)
class Rule:
    """Opens after so many failures in a row; waits `base_ms`, then twice as long each time, up to `cap_ms`."""

    after: int = 5
    base_ms: int = 30_000
    cap_ms: int = 900_000


@dataclass(frozen=True, slots=True)
class Rules:
    """One rule for most errors, others by error code. `jitter` is the share by which a wait may be shorter."""

    usual: Rule = Rule()
    by_code: Mapping[str, Rule] = field(default_factory=dict)
    jitter: float = 0.1

    def of(self, code: str) -> Rule:
        return self.by_code.get(code, self.usual)


def rules(usual: Rule, auth_ms: int) -> Rules:
    """The rule of every error code, from the failure policy and the numbers of the settings."""
    by_name = {
        BreakerRule.USUAL: usual,
        BreakerRule.NEVER: replace(usual, after=sys.maxsize),
        # The other targets of the dead process are polled before this target is polled again.
        BreakerRule.AT_ONCE: replace(usual, after=1),
        # Repeated logins with a wrong password can lock the account.
        BreakerRule.AT_ONCE_AND_LONG: Rule(1, auth_ms, auth_ms),
        BreakerRule.EVERY_SLOT: Rule(min(2, usual.after), 0, 0),
    }
    by_code = {code: by_name[row.breaker] for code, row in error_codes.TABLE.items()}
    return Rules(usual, by_code)


@dataclass(frozen=True, slots=True)
class Breaker:
    """The breaker of one target. `trips` counts the times it opened or stayed open since it last was closed."""

    trips: int = 0
    since_ms: int = 0  # when it opened
    probe_ms: int = 0  # when it may be asked again

    def pack(self) -> list[int]:
        return [self.trips, self.since_ms, self.probe_ms]


CLOSED = Breaker()


def unpack(values: Sequence[Any]) -> Breaker:
    """Raises TypeError or ValueError when these are not the values of a breaker."""
    trips, since_ms, probe_ms = values
    return Breaker(int(trips), int(since_ms), int(probe_ms))


def admit(breaker: Breaker, now_ms: int) -> Position:
    """May it be polled now? Yes when closed, once when half-open, no when open."""
    if not breaker.trips:
        return Position.CLOSED
    return Position.HALF_OPEN if now_ms >= breaker.probe_ms else Position.OPEN


def record(
    breaker: Breaker, failures: int, code: str, now_ms: int, rules: Rules, chance: float
) -> Breaker:
    """The breaker after a poll; `failures` in a row including it, 0 after a good one. `chance` is random in [0, 1)."""
    rule = rules.of(code)
    if not failures:
        return CLOSED
    if not breaker.trips and failures < rule.after:
        return CLOSED
    trips = breaker.trips + 1
    wait_ms = backoff.exponential(trips, rule.base_ms, rule.cap_ms) * (1 - rules.jitter * chance)
    return Breaker(trips, breaker.since_ms or now_ms, now_ms + round(wait_ms))
