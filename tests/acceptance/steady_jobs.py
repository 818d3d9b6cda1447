"""Jobs with short cadences for tests that break the cluster, installed like those of any plugin.

Each run appends a line when it begins and one when it ends, so that a test counts runs from
outside. The environment has their cadence and their length.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import NamedTuple

from poller.jobs import api

#: No settings of poller, so they have no POLLER_ prefix.
FILE_VARIABLE = "STEADY_FILE"
CADENCE_VARIABLE = "STEADY_CADENCE_S"
LENGTH_VARIABLE = "STEADY_LENGTH_S"
STEADY = "steady"
HURRIED = "hurried"
QUEUE = "job.poller-steady"
STALE_S = 4.0
MOST_ATTEMPTS = 10
WINDOW_S = 3600.0
MOST_PLANS = 10


class Line(NamedTuple):
    """What a run wrote: `began` or `ended`."""

    word: str
    job: str
    plan_ms: int
    attempt: int
    at_s: float


def write(word: str, context: api.Context) -> None:
    plan_ms = round(context.plan.timestamp() * 1000)
    line = f"{word} {context.job} {plan_ms} {context.attempt} {time.time():.3f}\n"
    # One short write to a file opened for appending: lines of several workers do not mix.
    file = os.open(os.environ[FILE_VARIABLE], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(file, line.encode())
    finally:
        os.close(file)


def lines(file: Path, job: str = STEADY) -> list[Line]:
    """Read what the runs of a job wrote so far."""
    found = []
    for text in file.read_text().splitlines() if file.exists() else ():
        word, name, plan_ms, attempt, at_s = text.split()
        if name == job:
            found.append(Line(word, name, int(plan_ms), int(attempt), float(at_s)))
    return found


def run(context: api.Context) -> api.Result:
    """Work for a while in short steps."""
    write("began", context)
    until_mono = time.monotonic() + float(os.environ.get(LENGTH_VARIABLE, "0.2"))
    while time.monotonic() < until_mono:
        context.heartbeat()
        time.sleep(0.05)
    write("ended", context)
    return api.Result(rows_affected=1)


_terms = {
    "every_s": float(os.environ.get(CADENCE_VARIABLE, "5")),
    "heartbeat_s": 1.0,
    "stale_timeout_s": STALE_S,
    "max_attempts": MOST_ATTEMPTS,
    "retry_delays_s": [0.5],
    "max_plans_per_tick": MOST_PLANS,
}
steady = api.job(name=STEADY, catch_up="every_plan", catch_up_window_s=WINDOW_S, **_terms)(run)
hurried = api.job(name=HURRIED, catch_up="latest_only", **_terms)(run)


def install(directory: Path) -> None:
    """Register the jobs for every Python that has `directory` on its path, as pip would."""
    info = directory / "poller_steady-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: poller-steady\nVersion: 1.0\n")
    points = "".join(
        f"{name} = tests.acceptance.steady_jobs:{name}\n" for name in (STEADY, HURRIED)
    )
    (info / "entry_points.txt").write_text(f"[poller.jobs]\n{points}")
