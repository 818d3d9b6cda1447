"""Jobs for the acceptance tests, installed like those of any plugin.

Each writes a line when it begins, goes on and ends, so that a test can watch it from outside.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from poller.jobs import api

#: The file of the lines. No setting of poller, so it has no POLLER_ prefix.
FILE_VARIABLE = "JOB_ZOO_FILE"
QUEUE = "job.poller-job-zoo"
#: An hour: no test waits for its end, and the latest plan of a cadence this long stays the same.
LONG_S = 3600.0


class Line(NamedTuple):
    """What a handler wrote."""

    word: str
    job: str
    pid: int
    attempt: int
    at_s: float


def write(word: str, context: api.Context) -> None:
    line = f"{word} {context.job} {os.getpid()} {context.attempt} {time.time()}\n"
    with open(os.environ[FILE_VARIABLE], "a") as file:
        file.write(line)


def lines(file: Path) -> Iterator[Line]:
    """Read what the handlers wrote so far."""
    if not file.exists():
        return
    for text in file.read_text().splitlines():
        word, job, pid, attempt, at_s = text.split()
        yield Line(word, job, int(pid), int(attempt), float(at_s))


@api.job(every_s=LONG_S)
def quick(context: api.Context) -> api.Result:
    """Does nothing."""
    write("began", context)
    return api.Result(rows_affected=3, details={"runner": context.runner})


@api.job(every_s=LONG_S, retry_delays_s=[0.0])
def flaky(context: api.Context) -> None:
    """Fails at its first attempt."""
    write("began", context)
    if context.attempt == 1:
        raise ValueError("the first attempt fails")


@api.job(every_s=LONG_S, heartbeat_s=0.5, stale_timeout_s=2.0)
def ticking(context: api.Context) -> None:
    """Ticks until it is cancelled; a second attempt ends by itself."""
    write("began", context)
    try:
        while context.attempt == 1:
            write("tick", context)
            time.sleep(0.05)
    except api.Cancelled:
        write("cancelled", context)
        raise
    write("ended", context)


@api.job(every_s=LONG_S, run_timeout_s=LONG_S)
def endless(context: api.Context) -> None:
    """Runs until it is cancelled."""
    write("began", context)
    while True:
        time.sleep(0.05)


@api.job(every_s=LONG_S, run_timeout_s=LONG_S)
def sleeping(context: api.Context) -> None:
    """Blocks in C, where no cancellation reaches it."""
    write("began", context)
    time.sleep(LONG_S)


NAMES = ("quick", "flaky", "ticking", "endless", "sleeping")


def install(directory: Path) -> None:
    """Register the jobs for every Python that has `directory` on its path, as pip would."""
    info = directory / "poller_job_zoo-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: poller-job-zoo\nVersion: 1.0\n")
    points = "".join(f"{name} = tests.acceptance.job_zoo:{name}\n" for name in NAMES)
    (info / "entry_points.txt").write_text(f"[poller.jobs]\n{points}")
