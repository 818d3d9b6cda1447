"""Our own jobs come in through the entry points, as those of a plugin do."""

from __future__ import annotations

import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from poller.jobs import registry
from poller.jobs.api import JobSpec

ROOT = Path(__file__).parents[3]


def points() -> list[EntryPoint]:
    """The entry points of this tree: those of the installed package may be older."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    group = project["entry-points"][registry.GROUP]
    return [EntryPoint(name, value, registry.GROUP) for name, value in group.items()]


JOBS = registry.load(points())


def test_every_job_of_ours_is_usable() -> None:
    """Its entry point has its name."""
    assert JOBS.broken == ()
    assert set(JOBS.jobs) == {
        "board-audit",
        "compact-history",
        "roll-up-history",
        "daily-statistics",
        "database-upkeep",
        "prune",
    }


@pytest.mark.parametrize("job", JOBS.jobs.values(), ids=JOBS.jobs.keys())
def test_a_job_of_ours_says_what_it_does_and_may_be_run_again(job: JobSpec) -> None:
    """All are idempotent, and one that was lost is taken over within a minute."""
    terms = job.terms
    assert terms.description.endswith(".")
    assert (terms.reentrant, terms.overlap) == (True, False)
    assert (terms.heartbeat_s, terms.stale_timeout_s) == (10.0, 60.0)
    assert terms.max_attempts > 1
    assert terms.retry_delays_s
