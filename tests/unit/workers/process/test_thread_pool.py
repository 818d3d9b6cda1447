"""The spare threads of the default pool."""

from __future__ import annotations

import pytest

from poller.workers.process import process_limits, thread_pool


@pytest.mark.parametrize(
    ("files", "spare"), [(20 * 64, 4), (16 * 64, 0), (2**31, 112)], ids=["some", "none", "many"]
)
def test_spare_threads_stay_within_the_file_limit(
    monkeypatch: pytest.MonkeyPatch, files: int, spare: int
) -> None:
    """A batch that waits keeps its sockets, and the batch on its capacity opens others.

    Jobs have threads beside them: 4 run, 16 wait for a slot, 2 plan.
    """
    file_limit = files + process_limits.OWN_FILES
    monkeypatch.setattr(process_limits, "raise_file_limit", lambda: file_limit)
    pool = thread_pool.TaskPool(16)
    assert (pool.spare, pool.executor._max_workers) == (spare, 16 + spare + 22)
