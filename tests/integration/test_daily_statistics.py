"""The job `daily-statistics`: which days a plan is about, and what it says of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from poller.bootstrap import Services
from poller.db.record import run_ledger, target_statistics
from poller.domain.failures.outcome import Result
from poller.domain.record.run import Run
from poller.jobs import api
from poller.jobs.builtin import daily_statistics as module
from tests.integration.job_contexts import RunContext

MIDNIGHT = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
DAY = timedelta(days=1)


def ms(instant: datetime) -> int:
    return round(instant.timestamp() * 1000)


def count(services: Services, plan: datetime, **changes: int) -> api.Result:
    result = module.daily_statistics(RunContext(services, plan=plan, **changes))
    assert isinstance(result, api.Result)
    return result


def store(services: Services, day: datetime, targets: int, outcome: Result = Result.OK) -> None:
    rows = []
    for number in range(1, targets + 1):
        at_ms = ms(day) + number
        rows.append(Run(number, at_ms, outcome, started_ms=at_ms, finished_ms=at_ms + number))
    run_ledger.write(services.engine, rows)


def test_a_plan_counts_the_day_that_ended_and_the_day_before(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Today is not counted. A second run of the plan writes the same rows."""
    monkeypatch.setattr(module, "CHUNK", 2)
    store(services, MIDNIGHT, 5)
    store(services, MIDNIGHT - DAY, 5)
    store(services, MIDNIGHT - 2 * DAY, 3)
    results = [count(services, MIDNIGHT) for _ in range(2)]
    names = [str((MIDNIGHT - back * DAY).date()) for back in (2, 1)]
    details = {names[0]: {"targets": 3}, names[1]: {"targets": 5}}
    assert results == [api.Result(8, details)] * 2
    stored = target_statistics.listing(
        services.engine, range(9), ms(MIDNIGHT - 3 * DAY), ms(MIDNIGHT)
    )
    assert [day.max_ms for day in stored] == [1, 2, 3, 1, 2, 3, 4, 5]


def test_a_run_on_demand_counts_whole_days_only(services: Services) -> None:
    """Its plan is an instant of the day, which has not ended."""
    store(services, MIDNIGHT, 1)
    assert count(services, MIDNIGHT + timedelta(seconds=1)).rows_affected == 0


def test_a_day_whose_good_runs_are_gone_is_left_out(services: Services) -> None:
    """Only its failed runs are left: it would look like a day of failures."""
    plan = MIDNIGHT - 40 * DAY
    store(services, plan - DAY, 2, Result.FAILED)
    result = count(services, plan)
    assert result.rows_affected == 0
    assert set(result.details.values()) == {"its runs are past their retention"}


def test_counting_is_cancelled_between_two_steps(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was stored stays; the same plan again completes it."""
    monkeypatch.setattr(module, "CHUNK", 2)
    store(services, MIDNIGHT - DAY, 5)
    with pytest.raises(api.Cancelled):
        count(services, MIDNIGHT, cancel_at=5)
    assert count(services, MIDNIGHT).rows_affected == 5
