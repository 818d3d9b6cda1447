"""Polls beside the plan, within a budget: failed polls that get another attempt, and failing
targets that are polled before their next slot.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence

from poller.domain.failures import retry, site_outage
from poller.domain.inventory.poll_target import PollTarget
from poller.settings import Settings, policies
from poller.workers.batch.finished_poll import FinishedPoll


class Retries:
    """One per worker process, safe for threads."""

    def __init__(self, settings: Settings) -> None:
        self.limits = policies.retry_limits(settings)
        self._budget = retry.Budget(settings.retry_share)
        self._confirmations = retry.Budget(settings.retry_share)
        self._dark_after = settings.site_least
        self._unanswered: Counter[str] = Counter()  # by site: unanswered polls in a row
        self._lock = threading.Lock()

    def choose(self, polls: Sequence[FinishedPoll], attempt: int) -> set[int]:
        """Return the ids of the targets to poll again as the next attempt."""
        worthwhile = [poll for poll in polls if self._is_worthwhile(poll, attempt)]
        with self._lock:
            self._count_unanswered(polls)
            candidates = [
                poll.target.id
                for poll in worthwhile
                if self._unanswered[poll.target.site] < self._dark_after
            ]
            first_attempts = len(polls) if attempt == 0 else 0
            self._budget = self._budget.earn(first_attempts)
            self._confirmations = self._confirmations.earn(first_attempts)
            granted = self._budget.affordable(len(candidates))
            self._budget = self._budget.spend(granted)
        return set(candidates[:granted])

    def affords_confirmation(self, target: PollTarget) -> bool:
        """Whether a failing target may be polled before its next slot; spends from the budget."""
        with self._lock:
            if self._unanswered[target.site] >= self._dark_after:
                return False
            granted = self._confirmations.affordable(1)
            self._confirmations = self._confirmations.spend(granted)
        return bool(granted)

    def _count_unanswered(self, polls: Sequence[FinishedPoll]) -> None:
        """Count by site: retries at a site where no device answers would only delay other polls."""
        for poll in polls:
            site = poll.target.site
            is_dark = not poll.outcome.good and poll.outcome.error_code in site_outage.DARK
            if site and is_dark:
                self._unanswered[site] += 1
            else:
                self._unanswered.pop(site, None)

    def _is_worthwhile(self, poll: FinishedPoll, attempt: int) -> bool:
        """The probe of an open breaker is one attempt: it is never retried."""
        if poll.started.status.breaker.trips:
            return False
        target = poll.target
        spent_ms = poll.finished_ms - poll.started.plan_ms
        return retry.is_worthwhile(
            poll.outcome, attempt, spent_ms, target.timeout_ms, target.interval_ms, self.limits
        )
