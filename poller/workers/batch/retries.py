"""Which failed polls of a round are tried again at once? Those that are worth it, as far as the budget goes."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence

from poller.domain.failures import retry, site_outage
from poller.settings import Settings, policies
from poller.state.board.board_values import Start, Started
from poller.workers.batch.collection import Collected
from poller.workers.batch.target_cache import Known


class Retries:
    """One per worker process; called from many threads."""

    def __init__(self, settings: Settings) -> None:
        self.limits = policies.retry_limits(settings)
        self._budget = retry.Budget(settings.retry_share)
        self._least = settings.site_least
        self._silent: Counter[str] = Counter()  # by site: polls in a row that found nobody
        self._lock = threading.Lock()

    def choose(
        self,
        attempt: int,
        start: Start,
        done: Sequence[tuple[Started, Collected]],
        known: Mapping[int, Known],
    ) -> set[int]:
        """The targets of this round that get another try."""
        wanted = [
            answer.id
            for answer, item in done
            if self._worthwhile(attempt, start, answer, item, known[item.id])
        ]
        with self._lock:
            self._listen(done, known)
            wanted = [i for i in wanted if self._silent[known[i].target.site] < self._least]
            self._budget = self._budget.earned(len(done) if attempt == 0 else 0)
            granted = self._budget.granted(len(wanted))
            self._budget = self._budget.spent(granted)
        return set(wanted[:granted])

    def _listen(
        self, done: Sequence[tuple[Started, Collected]], known: Mapping[int, Known]
    ) -> None:
        """A site of which nobody answers is no fluke: tries would only take the places of polls that succeed."""
        for _, item in done:
            name = known[item.id].target.site
            if name and not item.outcome.good and item.outcome.error_code in site_outage.DARK:
                self._silent[name] += 1
            else:
                self._silent.pop(name, None)

    def _worthwhile(
        self, attempt: int, start: Start, answer: Started, item: Collected, known: Known
    ) -> bool:
        """A probe of a broken target is one question, not three."""
        spent_ms = start.now_ms + item.elapsed_ms - answer.plan_ms
        timeout_ms, interval_ms = known.target.timeout_ms, known.target.interval_ms
        return not answer.status.breaker.trips and retry.worthwhile(
            item.outcome, attempt, spent_ms, timeout_ms, interval_ms, self.limits
        )
