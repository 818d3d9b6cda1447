"""How many files and sockets may this process open, and is that enough for what it shall poll at a time?"""

from __future__ import annotations

import resource

from poller import errors

#: Connections to Redis and SQL, spool files, the log, Python's own.
OWN = 128


def raise_limit() -> int:
    """As far as allowed. Returns how many it is now; a limit that is infinite counts as a very large one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return 2**31 if hard == resource.RLIM_INFINITY else hard


def spare(concurrency: int, batch_size: int, limit: int) -> int:
    """How many more batches there would be files for."""
    return max(0, (limit - OWN) // batch_size - concurrency)


def check(concurrency: int, batch_size: int, limit: int) -> None:
    """Each target of each batch may hold a socket at the same time. Raises InvalidSetting."""
    need = concurrency * batch_size + OWN
    if need <= limit:
        return
    fits = (limit - OWN) // batch_size
    lower = f"lower worker_concurrency to {fits}" if fits > 0 else "lower batch_size"
    raise errors.InvalidSetting(
        f"worker_concurrency: {concurrency} batches of {batch_size} targets (batch_size) may need {need} open files,"
        f" and this process may have {limit}",
        hint=f"{lower} (POLLER_WORKER_CONCURRENCY, --concurrency), lower POLLER_BATCH_SIZE, or raise the limit"
        " (ulimit -n, LimitNOFILE= of systemd, ulimits: of Docker)",
    )
