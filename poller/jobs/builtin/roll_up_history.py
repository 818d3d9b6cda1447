"""The job `roll-up-history`: makes the roll-ups of days that are over, for a bounded time."""

from __future__ import annotations

import time
from typing import Any

from poller import errors
from poller.db import database_clock
from poller.jobs import api

#: Duration of a run at most; the next one goes on.
SECONDS = 420.0
_DAY_MS = 86_400_000
#: Targets that a failure names.
SHOWN = 20


@api.job(
    every_s=600, name="roll-up-history", run_timeout_s=900, max_attempts=2, retry_delays_s=(60.0,)
)
def roll_up_history(context: api.Context) -> api.Result:
    """Make roll-ups of five minutes and of an hour, and make those of changed days anew."""
    # Here, not above: a worker that polls and runs no such job needs no numpy.
    from poller.db.history import plain_pass, rollup_pass
    from poller.db.history.rollups import Kept, PlainKept
    from poller.domain.series.plain_points import MetricNames

    engine = context.services.engine
    settings = context.services.settings
    now_ms = database_clock.now_ms(engine)
    metrics = MetricNames(settings.sql_history_metrics)
    plain = PlainKept(metrics, now_ms - round(settings.sql_history_days * _DAY_MS))
    kept = Kept(
        five_minutes=settings.history_5m_days > 0,
        hours=settings.history_1h_days > 0,
        complete_since_ms=now_ms - round(settings.readings_days * _DAY_MS),
        plain=plain if settings.sql_history_metrics else None,
    )

    def rest(seconds: float) -> None:
        context.heartbeat()
        time.sleep(seconds)

    until_mono = time.monotonic() + SECONDS
    details: dict[str, Any] = {}
    if settings.sql_history_metrics:
        # First: rows of today are waited for, days that are over are not.
        written = plain_pass.refresh(engine, now_ms, metrics, rest, until_mono)
        details = {"sql_rows": written.rows, "sql_complete": written.is_complete}
    done = rollup_pass.roll_up(engine, now_ms, kept, rest, until_mono)
    if done.damaged:
        ids = ", ".join(map(str, sorted(done.damaged)[:SHOWN]))
        message = f"the history of {len(done.damaged)} targets cannot be rolled up: targets {ids}"
        raise errors.StoreError(message, done.fault, "their days stay marked, and are tried again")
    details = {"days": done.days, "complete": done.is_complete, **details}
    return api.Result(done.rows, details)
