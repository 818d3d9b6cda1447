"""Which plans are attempted now: catch-up, retries, the bound, and the hook of a job."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poller.domain.jobs.job_run import Status
from poller.domain.jobs.job_schedule import Cadence, Cron
from poller.domain.jobs.job_terms import CatchUp, JobTerms
from poller.domain.jobs.plan_choice import PlannedRun, ScopeHistory, due_plans, retry_delay_s

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
NOON = 1_800_014_400_000  # on the grid of an hour
NEW = ScopeHistory()


def terms(**values: Any) -> JobTerms:
    made = JobTerms(**{"name": "job", "schedule": Cadence(5 * MINUTE_MS), **values})
    made.check()
    return made


def every_plan(**values: Any) -> JobTerms:
    return terms(catch_up=CatchUp.EVERY_PLAN, **values)


def after(plan_ms: int, *retries: int, is_running: bool = False) -> ScopeHistory:
    """The history of a scope whose newest scheduled run is this one."""
    return ScopeHistory(PlannedRun(plan_ms, Status.SUCCESS, 1), is_running, retries)


@pytest.mark.parametrize("job", [terms(), every_plan()])
def test_without_history_the_latest_plan_is_the_first(job: JobTerms) -> None:
    """A new job does not catch up with a time before it."""
    assert due_plans(job, NEW, NOON + 90_000) == [NOON]


def test_latest_only_skips_what_was_missed() -> None:
    """After an hour of downtime the newest plan is run, once."""
    assert due_plans(terms(), after(NOON - HOUR_MS), NOON + 1) == [NOON]
    assert due_plans(terms(), after(NOON), NOON + 1) == []
    assert due_plans(terms(), after(NOON + 5 * MINUTE_MS), NOON + 1) == []


def test_a_delay_moves_the_attempt_and_not_the_plan() -> None:
    """With five minutes of delay the plan of noon is attempted at 12:05."""
    job = terms(delay_s=300)
    history = after(NOON - 5 * MINUTE_MS)
    assert due_plans(job, history, NOON + 299_999) == []
    assert due_plans(job, history, NOON + 300_000) == [NOON]


def test_every_plan_of_the_window_is_caught_up_in_order() -> None:
    """Two hours of downtime, a window of one hour, 10 a tick: 13 plans in two ticks."""
    job = every_plan(catch_up_window_s=3600)
    done = NOON - 2 * HOUR_MS
    ran: list[int] = []
    for _tick in range(3):
        plans = due_plans(job, after(done), NOON)
        assert len(plans) <= 10
        ran += plans
        done = ran[-1]
    assert ran == list(range(NOON - HOUR_MS, NOON + 1, 5 * MINUTE_MS))


@pytest.mark.parametrize("window_s", [0, 1, 299])
def test_a_window_shorter_than_the_cadence_leaves_the_latest_plan(window_s: float) -> None:
    """A tick that comes late finds the plan all the same."""
    job = every_plan(catch_up_window_s=window_s)
    assert due_plans(job, after(NOON - HOUR_MS), NOON + 299_000) == [NOON]


def test_a_delay_longer_than_the_window_leaves_plans_to_run() -> None:
    """The window counts from the instant that the delay looks at."""
    job = every_plan(delay_s=900, catch_up_window_s=300)
    assert due_plans(job, after(NOON - HOUR_MS), NOON + 900_000) == [NOON - 5 * MINUTE_MS, NOON]


def test_the_window_is_rounded_up_to_the_grid() -> None:
    """A plan that is older than the window by a millisecond is left out."""
    job = every_plan(catch_up_window_s=600)
    plans = due_plans(job, after(NOON - HOUR_MS), NOON + 1)
    assert plans == [NOON - 5 * MINUTE_MS, NOON]


@pytest.mark.parametrize("job", [terms(), every_plan()])
def test_a_due_retry_comes_first_though_newer_plans_exist(job: JobTerms) -> None:
    """A failed plan is not stranded behind newer ones, in both modes."""
    failed = NOON - 7 * HOUR_MS
    history = after(NOON - 5 * MINUTE_MS, failed)
    assert due_plans(job, history, NOON) == [failed, NOON]
    assert due_plans(job, after(NOON, failed), NOON) == [failed]


def test_a_waiting_retry_does_not_hold_up_newer_plans() -> None:
    """The plan that failed and is not due yet is not named; the next one is."""
    failed = ScopeHistory(PlannedRun(NOON - 5 * MINUTE_MS, Status.FAILED, 1))
    assert due_plans(every_plan(), failed, NOON) == [NOON]


def test_retries_count_towards_the_bound() -> None:
    """Two retries and one new plan of a bound of three; the rest at the next tick."""
    history = after(NOON - HOUR_MS, NOON - 3 * HOUR_MS, NOON - 2 * HOUR_MS)
    plans = due_plans(every_plan(max_plans_per_tick=3), history, NOON)
    assert plans == [NOON - 3 * HOUR_MS, NOON - 2 * HOUR_MS, NOON - 55 * MINUTE_MS]
    [oldest] = due_plans(terms(max_plans_per_tick=1), history, NOON)
    assert oldest == NOON - 3 * HOUR_MS


def test_a_running_scope_gets_nothing_unless_the_job_overlaps() -> None:
    """Plans of a scope run one after the other."""
    history = after(NOON - HOUR_MS, NOON - 2 * HOUR_MS, is_running=True)
    assert due_plans(terms(), history, NOON) == []
    assert due_plans(terms(overlap=True), history, NOON) == [NOON - 2 * HOUR_MS, NOON]


def test_a_hook_replaces_the_schedule_and_keeps_its_order() -> None:
    """The future, what ran, and repetitions are left out; the bound and retries apply."""
    newest, failed = NOON - HOUR_MS, NOON - 2 * HOUR_MS
    named = [NOON + 1, NOON, newest + 7, NOON, newest, newest - 5, NOON - 9]
    job = terms(max_plans_per_tick=3)
    assert due_plans(job, after(newest), NOON, named) == [newest + 7, NOON - 9, NOON]
    assert due_plans(job, after(newest, failed), NOON, named) == [failed, newest + 7, NOON - 9]
    assert due_plans(job, NEW, NOON, []) == []


def test_a_cron_job_collapses_missed_plans_in_its_zone() -> None:
    """A week without a leader, and one run; nothing at a cold start in another hour."""
    nightly = Cron("30 2 * * *", "Europe/Amsterdam")
    week_ago = nightly.latest_ms(NOON - 7 * 24 * HOUR_MS)
    assert due_plans(terms(schedule=nightly), after(week_ago), NOON) == [nightly.latest_ms(NOON)]


NINE = Cron("0 9 * * *", "Asia/Tokyo")
AT_NINE = NINE.latest_ms(NOON)
DAY_MS = 24 * HOUR_MS


def never_late(newest_ms: int | None, created_ms: int, now_ms: int) -> list[int]:
    """A hook as an author may write it: the newest missed plan, unless it is 5 minutes late."""
    plans = NINE.plans(created_ms if newest_ms is None else newest_ms, now_ms, 100)
    return [plan_ms for plan_ms in plans[-1:] if now_ms - plan_ms <= 5 * MINUTE_MS]


@pytest.mark.parametrize(
    ("newest_ms", "now_ms", "due"),
    [
        (AT_NINE - DAY_MS, AT_NINE - 1, []),
        (AT_NINE - DAY_MS, AT_NINE, [AT_NINE]),
        (AT_NINE - 9 * DAY_MS, AT_NINE + 5 * MINUTE_MS, [AT_NINE]),
        (AT_NINE - 9 * DAY_MS, AT_NINE + 5 * MINUTE_MS + 1, []),
        (AT_NINE, AT_NINE + MINUTE_MS, []),
        (None, AT_NINE + MINUTE_MS, [AT_NINE]),
        (None, AT_NINE - 2 * HOUR_MS, []),
    ],
    ids=["early", "due", "collapsed", "too late", "ran", "cold start", "cold start in between"],
)
def test_a_hook_that_refuses_late_plans(newest_ms: int | None, now_ms: int, due: list[int]) -> None:
    """Nine in the morning in Tokyo: missed days collapse, a late plan is skipped."""
    history = NEW if newest_ms is None else after(newest_ms)
    named = never_late(newest_ms, AT_NINE - HOUR_MS, now_ms)
    assert due_plans(terms(schedule=NINE), history, now_ms, named) == due


@pytest.mark.parametrize(
    ("delays", "attempt", "expected"),
    [
        ((60.0, 300.0), 1, 60.0),
        ((60.0, 300.0), 2, 300.0),
        ((60.0, 300.0), 4, 300.0),
        ((60.0, 300.0), 5, None),
        ((60.0, 300.0), 9, None),
        ((), 1, None),
        ((0.0,), 1, 0.0),
    ],
)
def test_delays_of_retries(delays: tuple[float, ...], attempt: int, expected: float | None) -> None:
    """The last delay is used again; an empty list or the last attempt means no retry."""
    assert retry_delay_s(terms(max_attempts=5, retry_delays_s=delays), attempt) == expected


SCHEDULES = st.sampled_from(
    [Cadence(5 * MINUTE_MS), Cadence(7_000), Cron("*/7 * * * *", "Australia/Lord_Howe"),
     Cron("30 2 * * *", "Europe/Amsterdam"), Cron("0 9 * * 1-5", "America/New_York")]
)  # fmt: skip
JOBS = st.builds(
    terms,
    schedule=SCHEDULES,
    catch_up=st.sampled_from(CatchUp),
    delay_s=st.integers(0, 4000),
    catch_up_window_s=st.integers(0, 10_000),
    max_plans_per_tick=st.integers(1, 12),
    overlap=st.booleans(),
)
NOWS = st.integers(NOON - 200 * 24 * HOUR_MS, NOON + 200 * 24 * HOUR_MS)


@given(JOBS, NOWS, st.integers(-100, 30_000), st.lists(st.integers(1, 10**9), max_size=5))
def test_plans_are_bounded_in_order_past_and_within_the_window(
    job: JobTerms, now: int, age_s: int, failed_ages: list[int]
) -> None:
    """For any schedule, mode, delay, window, history and due retries."""
    newest = now - age_s * 1000
    retries = tuple(sorted(newest - age for age in failed_ages))
    plans = due_plans(job, after(newest, *retries), now)
    assert len(plans) <= job.max_plans_per_tick
    assert plans == sorted(set(plans))
    instant = now - job.delay_s * 1000
    latest = job.schedule.latest_ms(round(instant))
    oldest = min(latest, instant - job.catch_up_window_s * 1000)
    for plan in set(plans) - set(retries):
        assert plan <= instant
        assert plan >= oldest
        assert plan > newest
        assert job.schedule.latest_ms(plan) == plan


@given(JOBS, NOWS, st.integers(0, 30_000))
def test_when_all_plans_are_done_none_is_due(job: JobTerms, now: int, age_s: int) -> None:
    """Catching up ends, with the latest plan as the last, and no plan is named twice."""
    newest = now - age_s * 1000 - 40_000_000
    ran: list[int] = []
    while plans := due_plans(job, after(newest), now):
        ran += plans
        newest = plans[-1]
    assert ran == sorted(set(ran))
    latest = job.schedule.latest_ms(now - round(job.delay_s * 1000))
    assert not ran or ran[-1] == latest
    assert due_plans(job, after(newest), now) == []
