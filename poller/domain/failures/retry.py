"""Retries before the next slot: which failures get one, and how many a worker can afford."""

from __future__ import annotations

from dataclasses import dataclass, replace

from poller.domain.failures import backoff
from poller.domain.failures.outcome import Outcome, Result


@dataclass(frozen=True, slots=True)
class Limits:
    """At most `tries` retries. The longest wait is `base_s`, then doubles up to `cap_s`."""

    tries: int = 2
    base_s: float = 1.0
    cap_s: float = 8.0

    def longest_wait_ms(self, attempt: int) -> int:
        """Return the longest wait before attempt + 1; Celery draws a wait from 0 to this."""
        longest_s = backoff.exponential(attempt + 1, self.base_s, self.cap_s)
        return round(longest_s * 1000)


def is_worthwhile(
    outcome: Outcome, attempt: int, spent_ms: int, timeout_ms: int, interval_ms: int, limits: Limits
) -> bool:
    """Whether a retry can help, and ends within half the interval.

    `attempt` is the last attempt, from 0; `spent_ms` the time since the slot. A partial outcome is
    stored as it is, without a retry.
    """
    if outcome.result is not Result.FAILED or not outcome.retryable:
        return False
    if attempt >= limits.tries:
        return False
    ends_after_ms = spent_ms + limits.longest_wait_ms(attempt) + timeout_ms
    return ends_after_ms <= interval_ms / 2


@dataclass(frozen=True, slots=True)
class Budget:
    """Tokens for retries.

    Each poll earns a share of a token, so retries add at most that share of load.
    """

    share: float = 0.1
    limit: float = 100.0
    tokens: float = 100.0

    def earn(self, polls: int) -> Budget:
        """Return the budget after these polls."""
        earned = polls * self.share
        tokens = min(self.limit, self.tokens + earned)
        return replace(self, tokens=tokens)

    def affordable(self, retries: int) -> int:
        """Return how many of these retries the tokens pay for."""
        return min(retries, int(self.tokens))

    def spend(self, retries: int) -> Budget:
        """Return the budget after these retries."""
        tokens = self.tokens - retries
        return replace(self, tokens=tokens)
