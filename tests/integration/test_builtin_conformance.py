"""Our own jobs pass the conformance suite that a plugin's jobs pass."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from poller.bootstrap import Services
from poller.jobs.builtin.board_invariant import board_audit
from poller.jobs.builtin.daily_statistics import daily_statistics
from poller.jobs.builtin.database_upkeep import database_upkeep
from poller.jobs.builtin.prune import prune
from poller.testing import job_conformance

_present: list[Services] = []


@pytest.fixture(autouse=True)
def _platform(services: Services) -> Iterator[None]:
    _present.append(services)
    yield
    _present.clear()


@contextmanager
def platform() -> Iterator[Services]:
    """The services of the test that runs."""
    yield _present[0]


TestPrune = job_conformance.suite(prune, platform)
TestDailyStatistics = job_conformance.suite(daily_statistics, platform)
TestDatabaseUpkeep = job_conformance.suite(database_upkeep, platform)
TestBoardAudit = job_conformance.suite(board_audit, platform)
