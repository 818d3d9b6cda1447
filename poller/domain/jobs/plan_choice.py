"""Which plans of a scope to attempt now, and how long a failed run waits for its next attempt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from poller.domain.jobs.job_run import Status
from poller.domain.jobs.job_terms import CatchUp, JobTerms


class PlannedRun(NamedTuple):
    """The newest scheduled run of a scope, as far as planning needs it."""

    plan_ms: int
    status: Status
    attempt: int


@dataclass(frozen=True, slots=True)
class ScopeHistory:
    """The ledger's rows of a scope, as far as planning needs them."""

    newest: PlannedRun | None = None  # the newest plan of the schedule; runs on demand not counted
    is_running: bool = False  # a run of any plan goes on, or is abandoned and not yet closed
    retry_plans: tuple[int, ...] = ()  # failed plans whose next attempt is due, oldest first


def due_plans(
    terms: JobTerms, history: ScopeHistory, now_ms: int, named: Sequence[int] | None = None
) -> list[int]:
    """The plans of a scope to attempt now, in order: first due retries, then new plans.

    A scope with a live run gets none unless the job overlaps. `named` is the result of a `plans`
    hook and replaces the schedule; of it, plans of the future and plans up to the newest run are
    left out. At most `max_plans_per_tick` plans are returned, the oldest: the newest run is all
    that planning remembers, so a plan that runs before an older one would hide it for ever.
    """
    if history.is_running and not terms.overlap:
        return []

    # All times of the schedule are seen through the delay, the window of catch-up too: a delay
    # longer than the window would leave no plan to run.
    instant_ms = now_ms - round(terms.delay_s * 1000)
    if named is not None:
        chosen = _usable(named, history, instant_ms)
    elif terms.catch_up is CatchUp.EVERY_PLAN:
        chosen = _missed_plans(terms, history, instant_ms)
    else:
        chosen = _latest_plan(terms, history, instant_ms)

    retries = sorted(set(history.retry_plans))
    in_order = dict.fromkeys([*retries, *chosen])
    return list(in_order)[: terms.max_plans_per_tick]


def retry_delay_s(terms: JobTerms, attempt: int) -> float | None:
    """How long a run waits after this failed attempt; None if it is not run again by itself.

    The last delay is used again, an empty list means no retry.
    """
    delays = terms.retry_delays_s
    if not delays or attempt >= terms.max_attempts:
        return None
    return delays[min(attempt, len(delays)) - 1]


def _latest_plan(terms: JobTerms, history: ScopeHistory, instant_ms: int) -> list[int]:
    latest_ms = terms.schedule.latest_ms(instant_ms)
    return [latest_ms] if _is_new(latest_ms, history) else []


def _missed_plans(terms: JobTerms, history: ScopeHistory, instant_ms: int) -> list[int]:
    """The plans after the newest run that are within the window; the latest always is."""
    latest_ms = terms.schedule.latest_ms(instant_ms)
    if not _is_new(latest_ms, history):
        return []
    if history.newest is None:
        return [latest_ms]

    oldest_ms = min(latest_ms, instant_ms - round(terms.catch_up_window_s * 1000))
    after_ms = max(history.newest.plan_ms, oldest_ms - 1)
    return terms.schedule.plans(after_ms, latest_ms, terms.max_plans_per_tick)


def _usable(named: Sequence[int], history: ScopeHistory, instant_ms: int) -> list[int]:
    return sorted(plan for plan in named if plan <= instant_ms and _is_new(plan, history))


def _is_new(plan_ms: int, history: ScopeHistory) -> bool:
    return history.newest is None or plan_ms > history.newest.plan_ms
