"""The job `compact-history`: what it says, and what it leaves when it is cancelled."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest
import sqlalchemy as sa

from poller import errors
from poller.bootstrap import Services
from poller.db import engine as sql
from poller.db.history import compaction, polls_of_span
from poller.db.record.stored_readings import Stored, Writer
from poller.db.tables import history_blocks
from poller.domain.metrics.reading import Reading, ReadingSet
from poller.jobs import api
from poller.jobs.builtin.compact_history import compact_history
from tests.integration.job_contexts import RunContext

MINUTE = 60_000
#: An instant of the past day, so that no poll of a test crosses midnight.
START_MS = time.time_ns() // 1_000_000 // 86_400_000 * 86_400_000 - 12 * 60 * MINUTE


def store(services: Services, targets: int, polls: int) -> None:
    readings = ReadingSet.of([Reading("m", 1.0)])
    rows = [
        Stored(target_id, START_MS + number * MINUTE, readings)
        for target_id in range(1, targets + 1)
        for number in range(polls)
    ]
    Writer(services.engine).write(rows, START_MS)


def test_a_run_moves_settled_polls_and_counts_them(services: Services) -> None:
    """A second run finds nothing to do."""
    store(services, 10, 30)
    first = compact_history(RunContext(services))
    assert first == api.Result(290, {"polls": 290, "blocks": 10, "complete": True})
    second = compact_history(RunContext(services))
    assert second == api.Result(0, {"polls": 0, "blocks": 0, "complete": True})
    assert len(polls_of_span.between(services.engine, 7, 0, 2**62)) == 30


def test_a_cancelled_run_stops_between_two_steps(services: Services) -> None:
    """What was moved stays moved; the next run does the rest."""
    store(services, 3 * compaction.CHUNK, 5)
    with pytest.raises(api.Cancelled):
        compact_history(RunContext(services, cancel_at=2))
    result = compact_history(RunContext(services))
    assert result.rows_affected == compaction.CHUNK * 4


def test_a_damaged_block_fails_the_run_and_names_the_target(services: Services) -> None:
    """All other targets are compacted all the same."""
    store(services, 3, 5)
    compact_history(RunContext(services))
    with sql.writing(services.engine) as conn:
        is_second = history_blocks.c.target_id == 2
        conn.execute(sa.update(history_blocks).where(is_second).values(data=b"x"))
    store(services, 3, 9)
    with pytest.raises(errors.StoreError, match="targets 2"):
        compact_history(RunContext(services))
    assert len(polls_of_span.between(services.engine, 3, 0, 2**62)) == 9


def test_a_poll_needs_no_numpy() -> None:
    """Neither the modules of a worker nor those of its jobs import it; it takes 20 MB."""
    modules = "poller.sinks.sql, poller.tasks.poll, poller.jobs.builtin.compact_history"
    more = "poller.jobs.builtin.prune, poller.db.history.polls_of_span"
    code = f"import sys, {modules}, {more}; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0
