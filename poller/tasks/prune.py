"""`poller.prune`: deletes rows past their retention. A RedBeat entry starts it on any worker."""

from __future__ import annotations

import time
from dataclasses import asdict

from poller import bootstrap, errors
from poller.app import app
from poller.db.record import retention
from poller.db.record.retention import Ages
from poller.observability import logs
from poller.settings import Settings
from poller.tasks import store_failures

log = logs.get(__name__)

_DAY_MS = 86_400_000


@app.task(name="poller.prune", ignore_result=True, throws=(errors.StoreError,))
def prune() -> None:
    """Delete a bounded number of rows; the next run deletes the others."""
    services = bootstrap.services()
    now_ms = time.time_ns() // 1_000_000

    with store_failures.recorded("poller.prune"):
        pruned = retention.prune(services.engine, now_ms, ages(services.settings))

    counts = asdict(pruned)
    if any(counts.values()):
        log.info("pruned", **counts)


def ages(settings: Settings) -> Ages:
    """The retention of each kind of row."""
    return Ages(
        runs_ms=_days_ms(settings.runs_days),
        runs_failed_ms=_days_ms(settings.runs_failed_days),
        readings_ms=_days_ms(settings.readings_days),
        events_ms=_days_ms(settings.events_days),
    )


def _days_ms(days: float) -> int:
    return round(days * _DAY_MS)
