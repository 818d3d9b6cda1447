"""How many plans of jobs are due in each of the next minutes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from poller.domain.jobs.job_terms import JobTerms

MINUTE_MS = 60_000
#: Plans of one job that are counted: one in each second of a quarter of an hour.
MOST_PLANS = 900


@dataclass(frozen=True, slots=True)
class DueMinute:
    """One minute: its start, and the number of plans of each job in it."""

    start_ms: int
    plans: Counter[str]

    @property
    def total(self) -> int:
        """The plans of all jobs."""
        return self.plans.total()


def ahead(jobs: Iterable[tuple[JobTerms, int]], now_ms: int, minutes: int) -> Sequence[DueMinute]:
    """Whole minutes of the clock, from the one of `now_ms` on. Each job comes with its next plan.

    A plan counts when it is attempted: `delay_s` after its instant. One that is late is due now.
    """
    first_ms = now_ms - now_ms % MINUTE_MS
    found = [DueMinute(first_ms + number * MINUTE_MS, Counter()) for number in range(minutes)]
    end_ms = first_ms + minutes * MINUTE_MS
    for terms, next_plan_ms in jobs:
        delay_ms = round(terms.delay_s * 1000)
        plans = terms.schedule.plans(next_plan_ms - 1, end_ms - delay_ms - 1, MOST_PLANS)
        for plan_ms in plans:
            number = max(0, plan_ms + delay_ms - first_ms) // MINUTE_MS
            found[number].plans[terms.name] += 1
    return found
