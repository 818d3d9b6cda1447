"""A failure of Redis or SQL in a task: one line a minute and a count, no traceback."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from types import SimpleNamespace

import pytest
from structlog.testing import capture_logs

from poller import bootstrap, errors
from poller.tasks import job as job_module
from poller.tasks import poll as poll_module
from poller.tasks import store_failures

AWAY = errors.StoreUnavailable("cannot use the database", "connection refused")


class Board:
    def __init__(self) -> None:
        self.counted: Counter[str] = Counter()
        self.is_away = False

    def count(self, stats: Mapping[str, int]) -> None:
        if self.is_away:
            raise errors.StoreUnavailable("Redis does not answer")
        self.counted.update(stats)


@pytest.fixture
def board(monkeypatch: pytest.MonkeyPatch) -> Board:
    """The board of a worker whose SQL is away."""

    def fail(*_: object) -> None:
        raise AWAY

    made = Board()
    services = SimpleNamespace(board=made)
    monkeypatch.setattr(bootstrap, "services", lambda: services)
    monkeypatch.setattr(poll_module, "_poller", lambda _: SimpleNamespace(poll=fail))
    monkeypatch.setattr(job_module, "_runner", lambda _: SimpleNamespace(plan=fail, run=fail))
    monkeypatch.setattr(store_failures, "_failures", store_failures.StoreFailures())
    return made


def test_a_batch_without_its_store_is_one_line_and_a_count(
    board: Board, caplog: pytest.LogCaptureFixture
) -> None:
    """Celery knows that the task failed, and logs no traceback."""
    with capture_logs() as lines:
        results = [poll_module.poll.apply(args=("token", [1])) for _ in range(81)]

    assert {result.state for result in results} == {"FAILURE"}
    assert [record for record in caplog.records if record.levelno > logging.INFO] == []
    assert [(line["event"], line["task"]) for line in lines] == [("task_postponed", "poller.poll")]
    assert "connection refused" in lines[0]["error"]
    assert board.counted == {"store_failures": 81}


def test_a_count_that_redis_does_not_take_is_added_to_the_next(board: Board) -> None:
    """A failure of Redis itself is counted when Redis is back."""
    board.is_away = True
    poll_module.poll.apply(args=("token", [1]))
    board.is_away = False
    poll_module.poll.apply(args=("token", [1]))
    assert board.counted == {"store_failures": 2}


def test_a_job_without_a_database_is_one_line(
    board: Board, caplog: pytest.LogCaptureFixture
) -> None:
    """The leader fires it again."""
    with capture_logs() as lines:
        job_module.plan_jobs.apply(args=(["prune"],))
        job_module.run_job.apply(args=("prune", "global", "global", [1_000], 1_000, "schedule"))
    assert [record for record in caplog.records if record.levelno > logging.INFO] == []
    assert [(line["event"], line["task"]) for line in lines] == [
        ("task_postponed", "poller.plan_jobs"),
        ("task_postponed", "poller.run_job"),
    ]


def test_a_bug_in_a_task_keeps_its_traceback(
    board: Board, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only failures of a store are expected."""

    def fail(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(poll_module, "_poller", lambda _: SimpleNamespace(poll=fail))
    poll_module.poll.apply(args=("token", [1]))
    assert "raised unexpected" in caplog.text
    assert not board.counted
