"""The wait of a starting worker for its database, which may come up later than the worker."""

from __future__ import annotations

import time
from collections.abc import Callable

from sqlalchemy.engine import Engine

from poller import errors
from poller.db import revision
from poller.domain.failures import backoff
from poller.observability import logs

log = logs.get(__name__)

#: Pauses between two attempts: the first, and the longest.
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 5.0
#: The same failure is logged again after this long.
REPEAT_LINE_S = 60.0


def wait_for_database(engine: Engine, sleep: Callable[[float], None] = time.sleep) -> None:
    """Return once the database answers and has the tables of this program.

    Raises SchemaMismatch. A signal ends the process during the wait: nothing runs yet.
    """
    started_mono = time.monotonic()
    logged = ""
    logged_mono = 0.0
    failures = 0

    while True:
        try:
            revision.check(engine)
            break
        except errors.StoreError as error:
            failures += 1
            text = str(error)
            now_mono = time.monotonic()
            if text != logged or now_mono >= logged_mono + REPEAT_LINE_S:
                logged, logged_mono = text, now_mono
                waited_s = round(now_mono - started_mono)
                log.warning("database_awaited", error=text, seconds=waited_s)
        sleep(backoff.exponential(failures, FIRST_PAUSE_S, LONGEST_PAUSE_S))

    if failures:
        log.info("database_reached", seconds=round(time.monotonic() - started_mono))
