"""Remove what is older than its time. A RedBeat entry starts it every few minutes, on any
worker.
"""

from __future__ import annotations

import time
from dataclasses import asdict

from poller import bootstrap
from poller.app import app
from poller.db.record import retention
from poller.db.record.retention import Ages
from poller.observability import logs
from poller.settings import Settings

log = logs.get(__name__)

_DAY_MS = 86_400_000


@app.task(name="poller.prune", ignore_result=True)
def prune() -> None:
    """One bounded pass; what is left waits for the next one."""
    services = bootstrap.services()
    done = asdict(
        retention.prune(services.engine, time.time_ns() // 1_000_000, ages(services.settings))
    )
    if any(done.values()):
        log.info("pruned", **done)


def ages(settings: Settings) -> Ages:
    kept = (
        settings.runs_days,
        settings.runs_failed_days,
        settings.readings_days,
        settings.events_days,
    )
    return Ages(*(round(days * _DAY_MS) for days in kept))
