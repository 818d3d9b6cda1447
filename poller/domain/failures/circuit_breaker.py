"""The circuit breaker of a target: when it opens, and when the next probe is due.

Closed: the target is polled at every slot. Open: the target waits for its probe. Half-open: the
probe is due or in flight. A target is in one place of the board, so the cluster has exactly one
probe. A good probe closes the breaker, a failed one doubles the wait. This module only decides; the
board waits.
"""

from __future__ import annotations

import enum
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from poller.domain.failures import backoff, error_codes
from poller.domain.failures.error_codes import BreakerRule


class BreakerState(enum.StrEnum):
    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


@dataclass(frozen=True, slots=True)
class Rule:
    """Open after `after` failures in a row. The wait is `base_ms`, then doubles up to a cap.

    The cap is `recent_cap_ms` for a target that was well within the last day, else `cap_ms`.
    """

    after: int = 3
    base_ms: int = 30_000
    cap_ms: int = 900_000
    recent_cap_ms: int = 300_000

    def longest_ms(self, ok_ms: int, now_ms: int) -> int:
        """Return the cap for a target that was last well at `ok_ms`."""
        was_well = now_ms - ok_ms < RECENT_MS
        return min(self.cap_ms, self.recent_cap_ms) if was_well else self.cap_ms


#: A target that was well within this time is probed more often.
RECENT_MS = 86_400_000
#: The rule of findings: the target is polled at every slot, so its breaker is always closed.
EVERY_SLOT = Rule(sys.maxsize, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Rules:
    """The rule of each error code. `jitter` is the share by which a wait may be shorter."""

    usual: Rule = Rule()
    by_code: Mapping[str, Rule] = field(default_factory=dict)
    jitter: float = 0.1

    def for_code(self, code: str) -> Rule:
        """Return the rule of an error code."""
        return self.by_code.get(code, self.usual)


def rules(usual: Rule, auth_ms: int) -> Rules:
    """Return the rule of every error code, from the failure policy and the settings."""
    by_name = {
        BreakerRule.USUAL: usual,
        BreakerRule.NEVER: replace(usual, after=sys.maxsize),
        # The other targets of the dead process are polled before this target is polled again.
        BreakerRule.AT_ONCE: replace(usual, after=1),
        # Repeated logins with a wrong password can lock the account.
        BreakerRule.AT_ONCE_AND_LONG: Rule(1, auth_ms, auth_ms, auth_ms),
        BreakerRule.EVERY_SLOT: EVERY_SLOT,
    }

    by_code = {code: by_name[row.breaker] for code, row in error_codes.TABLE.items()}
    return Rules(usual, by_code)


@dataclass(frozen=True, slots=True)
class Breaker:
    """The breaker of one target.

    `trips` counts openings and failed probes since the breaker was closed.
    """

    trips: int = 0
    since_ms: int = 0  # when the breaker opened
    probe_ms: int = 0  # when the next probe is due

    def pack(self) -> list[int]:
        """Return the values for the status of the target."""
        return [self.trips, self.since_ms, self.probe_ms]


CLOSED = Breaker()


def unpack(values: Sequence[Any]) -> Breaker:
    """Return the breaker of packed values. Raises TypeError or ValueError for any other values."""
    trips, since_ms, probe_ms = values
    return Breaker(int(trips), int(since_ms), int(probe_ms))


def state_at(breaker: Breaker, now_ms: int) -> BreakerState:
    """Return the state at an instant: a half-open breaker admits one poll, an open one none."""
    if not breaker.trips:
        return BreakerState.CLOSED
    if now_ms >= breaker.probe_ms:
        return BreakerState.HALF_OPEN
    return BreakerState.OPEN


def last_transition_ms(breaker: Breaker, finished_ms: int, now_ms: int) -> int:
    """Return when the breaker came into its present state; 0 for a closed one.

    `finished_ms` is the end of the last poll, which opened the breaker, or was a failed probe.
    """
    match state_at(breaker, now_ms):
        case BreakerState.CLOSED:
            return 0
        case BreakerState.HALF_OPEN:
            return breaker.probe_ms
        case BreakerState.OPEN:
            return breaker.since_ms if breaker.trips == 1 else finished_ms


def record(
    breaker: Breaker,
    failures: int,
    code: str,
    now_ms: int,
    rules: Rules,
    chance: float,
    ok_ms: int = 0,
) -> Breaker:
    """Return the breaker after a poll.

    `failures` counts the failures in a row including this poll, 0 after a good one. `chance` is
    random in [0, 1). `ok_ms` is the end of the last good poll.
    """
    rule = rules.for_code(code)
    if not failures or rule is EVERY_SLOT:
        return CLOSED
    if not breaker.trips and failures < rule.after:
        return CLOSED

    trips = breaker.trips + 1
    cap_ms = rule.longest_ms(ok_ms, now_ms)
    longest_ms = backoff.exponential(trips, rule.base_ms, cap_ms)
    wait_ms = longest_ms * (1 - rules.jitter * chance)
    return Breaker(
        trips=trips,
        since_ms=breaker.since_ms or now_ms,
        probe_ms=now_ms + round(wait_ms),
    )
