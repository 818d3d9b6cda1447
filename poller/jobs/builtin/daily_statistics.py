"""The job `daily-statistics`: counts the polls of each target and UTC day into `target_days`.

A plan at 00:00 is about the day that ended then. It also counts the day before again, because
results that waited on a worker's disk may have been stored since.
"""

from __future__ import annotations

import time
from typing import Any

from poller.db import database_clock
from poller.db.record import target_statistics
from poller.domain.record.target_day import DAY_MS, ended_days
from poller.jobs import api

#: Days that a run counts.
DAYS = 2
#: Targets counted by one statement: 36,000 rows where each is polled once a minute.
CHUNK = 25


@api.job(
    every_s=86_400,
    name="daily-statistics",
    delay_s=900,
    run_timeout_s=14_400,
    catch_up=api.CatchUp.EVERY_PLAN,
    catch_up_window_s=7 * 86_400,
    retry_delays_s=(300.0, 1_800.0),
)
def daily_statistics(context: api.Context) -> api.Result:
    """Count polls, failures, availability and durations of each target and day."""
    services = context.services
    plan_ms = round(context.plan.timestamp() * 1000)
    # Good runs leave first: a day without them would look like a day of failures.
    kept_ms = round(min(services.settings.runs_days, services.settings.runs_failed_days) * DAY_MS)
    complete_since_ms = database_clock.now_ms(services.engine) - kept_ms

    details: dict[str, Any] = {}
    rows = 0
    for day_ms in ended_days(plan_ms, DAYS):
        name = time.strftime("%Y-%m-%d", time.gmtime(day_ms / 1000))
        if day_ms < complete_since_ms:
            details[name] = "its runs are past their retention"
            continue
        targets = _count_day(context, day_ms)
        details[name] = {"targets": targets}
        rows += targets
    return api.Result(rows, details)


def _count_day(context: api.Context, day_ms: int) -> int:
    """Count and store a day, some targets at a time. Returns the number of targets with runs.

    After each step the run rests as long as the step took, so that polls get the processor.
    """
    engine = context.services.engine
    counted = 0
    after = 0
    while ids := target_statistics.targets_with_runs(engine, after, CHUNK):
        context.heartbeat()
        started_mono = time.monotonic()
        days = target_statistics.count_day(engine, day_ms, ids)
        target_statistics.write(engine, days)
        counted += len(days)
        after = ids[-1]
        time.sleep(time.monotonic() - started_mono)
    return counted
