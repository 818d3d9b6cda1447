"""Jobs that break the rules of jobs, each once a file with its name exists.

They are installed like those of any plugin, in two packages: one has a job that does no harm.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from poller.jobs import api

#: The directory of the files. No setting of poller, so it has no POLLER_ prefix.
DIRECTORY_VARIABLE = "ROGUE_DIRECTORY"
FOR_EVER_S = 1e6
SLEEPERS = [f"sleeper{number}" for number in range(50)]
SLEEP_S = 20.0

_terms: Mapping[str, Any] = {
    "every_s": 2.0,
    "heartbeat_s": 1.0,
    "stale_timeout_s": 4.0,
    "run_timeout_s": 2.0,
    "max_attempts": 2,
    "retry_delays_s": [1.0],
}


def is_open(name: str) -> bool:
    return Path(os.environ[DIRECTORY_VARIABLE], name).exists()


def _hang() -> None:
    time.sleep(FOR_EVER_S)  # in C: no exception reaches it


def _exit() -> None:
    os._exit(3)


def _allocate() -> None:
    hoard = []
    while True:
        hoard.append(b"x" * 64_000_000)


def _leave() -> None:
    sys.exit("the job wants to end the process")


def _job(name: str, deed: Callable[[], None]) -> api.JobSpec:
    def handler(_context: api.Context) -> None:
        if is_open(name):
            deed()

    return api.job(name=name, **_terms)(handler)


def lost_scopes(_services: api.Services, _now: datetime) -> Iterable[tuple[str, str]]:
    """Scopes that never come."""
    if is_open("lost"):
        _hang()
    return [api.GLOBAL]


hang = _job("hang", _hang)
end = _job("end", _exit)
allocate = _job("allocate", _allocate)
leave = _job("leave", _leave)
lost = api.job(name="lost", scopes=lost_scopes, **_terms)(lambda _context: None)
harmless = api.job(name="harmless", **_terms)(lambda _context: None)


def sleeper(name: str) -> api.JobSpec:
    """A job that takes long."""

    def handler(_context: api.Context) -> None:
        if is_open("sleepers"):
            time.sleep(SLEEP_S)

    terms = {**_terms, "every_s": 60.0, "run_timeout_s": 60.0}
    return api.job(name=name, **terms)(handler)


for _name in SLEEPERS:
    globals()[_name] = sleeper(_name)


def install(directory: Path, *names: str) -> None:
    """Register jobs for every Python that has `directory` on its path, as pip would."""
    _register(directory, "poller-rogue", names)
    _register(directory, "poller-harmless", ["harmless"])


def _register(directory: Path, distribution: str, names: Iterable[str]) -> None:
    info = directory / f"{distribution.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
    points = "".join(f"{name} = tests.acceptance.rogue_jobs:{name}\n" for name in names)
    (info / "entry_points.txt").write_text(f"[poller.jobs]\n{points}")
