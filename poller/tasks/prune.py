"""`poller.prune`: old runs and readings go. A RedBeat entry starts it every few minutes, on any worker."""

from __future__ import annotations

import time

from poller import bootstrap
from poller.app import app
from poller.db import retention
from poller.observability import logs

log = logs.get(__name__)

_DAY_MS = 86_400_000


@app.task(name="poller.prune", ignore_result=True)
def prune() -> None:
    """One bounded pass; what is left waits for the next one."""
    services = bootstrap.services()
    settings = services.settings
    done = retention.prune(
        services.engine,
        time.time_ns() // 1_000_000,
        round(settings.runs_days * _DAY_MS),
        round(settings.readings_days * _DAY_MS),
    )
    if any((done.runs, done.readings, done.shapes, done.events)):
        log.info("pruned", runs=done.runs, readings=done.readings, shapes=done.shapes, events=done.events)
