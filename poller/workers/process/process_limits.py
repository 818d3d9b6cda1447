"""Limits of this process: thresholds of the garbage collector, and open files."""

from __future__ import annotations

import gc
import resource
import threading
import time

from poller import errors

#: New objects that survive before Python collects the young generation. Polls create and drop
#: hundreds of thousands of small objects a second, nearly all without a cycle; with Python's own
#: thresholds a third of a worker's CPU time went into collections.
YOUNG_THRESHOLD = 200_000
#: Collections of one generation before a collection of the next.
_MIDDLE_THRESHOLD = 10
_OLD_THRESHOLD = 20

#: Seconds between two collections of what failures left.
FAILURE_GARBAGE_S = 60.0

#: Files of the process itself: connections to Redis and SQL, spool files, the log, Python's own.
OWN_FILES = 128


def collect_garbage_less_often() -> None:
    """Raise the thresholds of a worker process. Objects that exist now are never examined again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_THRESHOLD, _MIDDLE_THRESHOLD, _OLD_THRESHOLD)


class FailureGarbage:
    """Collects what failures leave in cycles: tracebacks with their frames, broken connections with
    their sockets.

    The thresholds above let 200,000 such objects gather, some 50 MB. A young collection once a
    minute finds tracebacks; after a lost connection all generations are examined, since a
    connection is old when it breaks.
    """

    def __init__(self) -> None:
        self._due_mono = time.monotonic() + FAILURE_GARBAGE_S
        self._connection_lost = threading.Event()

    def note_lost_connection(self) -> None:
        self._connection_lost.set()

    def collect_if_due(self) -> None:
        """Collect at most once a minute. Call this every few seconds."""
        now_mono = time.monotonic()
        if now_mono < self._due_mono:
            return
        self._due_mono = now_mono + FAILURE_GARBAGE_S
        generation = 2 if self._connection_lost.is_set() else 1
        self._connection_lost.clear()
        gc.collect(generation)


def raise_file_limit() -> int:
    """Raise the limit of open files as far as allowed, and return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return 2**31 if hard == resource.RLIM_INFINITY else hard


def spare_batches(concurrency: int, batch_size: int, file_limit: int) -> int:
    """Return the number of batches beyond `concurrency` that the file limit allows."""
    allowed = (file_limit - OWN_FILES) // batch_size
    return max(0, allowed - concurrency)


def check_file_limit(concurrency: int, batch_size: int, file_limit: int) -> None:
    """Raise InvalidSetting unless each target of each batch can have a socket at the same time."""
    needed = concurrency * batch_size + OWN_FILES
    if needed <= file_limit:
        return
    allowed = (file_limit - OWN_FILES) // batch_size
    advice = f"lower worker_concurrency to {allowed}" if allowed > 0 else "lower batch_size"
    raise errors.InvalidSetting(
        f"worker_concurrency: {concurrency} batches of {batch_size} targets (batch_size)"
        f" may need {needed} open files, and this process may have {file_limit}",
        hint=f"{advice} (POLLER_WORKER_CONCURRENCY, --concurrency), lower POLLER_BATCH_SIZE,"
        " or raise the limit (ulimit -n, LimitNOFILE= of systemd, ulimits: of Docker)",
    )
