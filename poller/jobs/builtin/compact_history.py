"""The job `compact-history`: moves polls from `readings` into blocks, for a bounded time."""

from __future__ import annotations

import time

from poller import errors
from poller.db import database_clock
from poller.jobs import api

#: Duration of a run at most; the next one goes on.
SECONDS = 420.0
#: Targets that a failure names.
SHOWN = 20


@api.job(
    every_s=600, name="compact-history", run_timeout_s=900, max_attempts=2, retry_delays_s=(60.0,)
)
def compact_history(context: api.Context) -> api.Result:
    """Move polls older than about an hour into compact blocks."""
    # Here, not above: a worker that polls and runs no such job needs no numpy.
    from poller.db.history import compaction, partitions

    engine = context.services.engine
    now_ms = database_clock.now_ms(engine)
    until_mono = time.monotonic() + SECONDS

    def rest(seconds: float) -> None:
        context.heartbeat()
        time.sleep(seconds)

    partitions.prepare(engine, now_ms)
    done = compaction.compact(engine, now_ms, rest, until_mono)
    if done.damaged:
        ids = ", ".join(map(str, done.damaged[:SHOWN]))
        message = f"the history of {len(done.damaged)} targets cannot be compacted: targets {ids}"
        raise errors.StoreError(message, done.fault, "their polls stay in the table readings")
    details = {"polls": done.polls, "blocks": done.blocks, "complete": done.is_complete}
    return api.Result(done.polls, details)
