"""The memory that a prefork worker shares with its children."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import pytest

from poller.workers.process import prefork_children
from poller.workers.process.prefork_children import Phase, PreforkChildren, ProcessCounts


def test_a_worker_adds_up_the_counts_of_its_children() -> None:
    """The successor of a dead child continues its counters; its running batches are gone."""
    children = PreforkChildren(3)
    first = ProcessCounts(10, 1, 100, spool_waiting=2, spool_dropped=1, secret_hits=9)
    children.write(0, first, inherited=ProcessCounts())
    children.write(2, ProcessCounts(polls=5, in_flight=1, rss_bytes=100), ProcessCounts())
    successor = ProcessCounts(polls=3, rss_bytes=50, secret_hits=2, secret_misses=1)
    inherited = ProcessCounts(polls=10, spool_dropped=1, secret_hits=9)
    children.write(0, successor, inherited)
    assert children.total() == ProcessCounts(
        polls=18,
        in_flight=1,
        rss_bytes=150,
        spool_waiting=0,
        spool_dropped=1,
        secret_hits=11,
        secret_misses=1,
    )


def test_a_child_follows_the_phase_of_its_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """The child is a real process here; it stops retrying and taking jobs, then drains, which ends
    it.
    """
    monkeypatch.setattr(prefork_children, "REPORT_S", 0.01)
    children = PreforkChildren(1)
    calls: list[str] = []
    poller: Any = SimpleNamespace(
        polls=7,
        in_flight=0,
        writers=SimpleNamespace(waiting=0, dropped=0, sink_reports=lambda _: []),
        credentials=SimpleNamespace(hits=0, misses=0),
        stop_retrying=lambda: calls.append("stop_retrying"),
        drain=lambda: os._exit(40 + len(calls)),
    )
    jobs: Any = SimpleNamespace(
        running=2,
        stop=lambda: calls.append("stop"),
        drain=lambda: calls.append("drain"),
    )
    pid = os.fork()
    if pid == 0:
        try:
            children.follow_worker(poller, jobs)
        finally:
            os._exit(1)
    while children.total().polls != 7:
        assert os.waitpid(pid, os.WNOHANG) == (0, 0)
    assert children.total().jobs == 2
    children.set_phase(Phase.DRAINED)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 43
