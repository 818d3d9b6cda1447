"""Is a failed poll worth another try before its next slot? Few tries, soon over, and never a storm of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from poller.domain.failures import backoff
from poller.domain.failures.outcome import Outcome, Result


@dataclass(frozen=True, slots=True)
class Limits:
    """At most `tries` more, the first after about `base_s`, each wait twice the one before, up to `cap_s`."""

    tries: int = 2
    base_s: float = 1.0
    cap_s: float = 8.0

    def longest_wait_ms(self, attempt: int) -> int:
        """Before attempt + 1; Celery draws the wait at random from 0 to this."""
        return round(backoff.exponential(attempt + 1, self.base_s, self.cap_s) * 1000)


def worthwhile(
    outcome: Outcome, attempt: int, spent_ms: int, timeout_ms: int, interval_ms: int, limits: Limits
) -> bool:
    """`attempt` was the last one (from 0), `spent_ms` went by since the slot. The next must end by half the interval.

    A partial answer is kept as it is: most of it is there.
    """
    if outcome.result is not Result.FAILED or not outcome.retryable or attempt >= limits.tries:
        return False
    return spent_ms + limits.longest_wait_ms(attempt) + timeout_ms <= interval_ms / 2


@dataclass(frozen=True, slots=True)
class Budget:
    """Tries are paid for by polls: when ten thousand devices go dark together, the extra load stays this share."""

    share: float = 0.1
    most: float = 100.0
    tokens: float = 100.0

    def earned(self, polls: int) -> Budget:
        return replace(self, tokens=min(self.most, self.tokens + polls * self.share))

    def granted(self, wanted: int) -> int:
        """How many of these tries can be paid for."""
        return min(wanted, int(self.tokens))

    def spent(self, tries: int) -> Budget:
        return replace(self, tokens=self.tokens - tries)
