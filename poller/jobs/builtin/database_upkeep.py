"""The job `database-upkeep`: statistics for the planner, and free space of a SQLite file."""

from __future__ import annotations

import time
from typing import Any

from poller.db import postgresql_upkeep, sqlite_upkeep
from poller.jobs import api

#: Duration of the work on a SQLite file at most; the next night goes on.
SECONDS = 1_200.0

_MEBIBYTE = 1024 * 1024
_COPY_ONCE = (
    "free space stays in the file, which an earlier release made; to give it back, stop poller and "
    "run: sqlite3 poller.db 'PRAGMA auto_vacuum = INCREMENTAL; VACUUM'"
)
_NOT_OWNED = "this role may not analyze them; the server does so by itself"


@api.job(
    cron="20 3 * * *",
    name="database-upkeep",
    run_timeout_s=1_800,
    max_attempts=2,
    retry_delays_s=(900.0,),
)
def database_upkeep(context: api.Context) -> dict[str, Any]:
    """Renew the statistics of the database's planner, and give back free space of a SQLite file."""
    if context.services.engine.dialect.name == "postgresql":
        return _postgresql(context)
    return _sqlite(context)


def _postgresql(context: api.Context) -> dict[str, Any]:
    analyzed, left_out = postgresql_upkeep.analyze(context.services.engine, context.heartbeat)
    details: dict[str, Any] = {"analyzed_tables": analyzed}
    if left_out:
        details["left_out"] = {"tables": left_out, "reason": _NOT_OWNED}
    return details


def _sqlite(context: api.Context) -> dict[str, Any]:
    def rest(seconds: float) -> None:
        context.heartbeat()
        time.sleep(seconds)

    until_mono = time.monotonic() + SECONDS
    done = sqlite_upkeep.keep(context.services.engine, rest, until_mono)
    details: dict[str, Any] = {
        "analyzed_tables": done.tables,
        "pages": done.pages,
        "free_pages": done.free_pages,
        "freed_pages": done.freed_pages,
        "log_mb": round(done.log_bytes / _MEBIBYTE, 1),
    }
    if not done.gives_back:
        details["note"] = _COPY_ONCE
    return details
