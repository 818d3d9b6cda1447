"""The limits of a worker process: garbage collection and open files."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from poller import errors
from poller.workers.process import process_limits

PROGRAM = """
import gc
from poller.workers.process import process_limits
class Cycle:
    def __init__(self): self.me = self
process_limits.collect_garbage_less_often()
frozen = gc.get_freeze_count()
largest = 0
for _ in range(3 * process_limits.YOUNG_THRESHOLD):
    Cycle()
    largest = max(largest, gc.get_count()[0])
left = sum(type(thing) is Cycle for thing in gc.get_objects())
print(frozen, left, largest)
"""


def test_garbage_in_cycles_is_still_collected() -> None:
    """The number of uncollected cycles stays bounded, however many polls leave some."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    frozen, left, largest = map(int, done.stdout.split())
    assert frozen > 1000
    assert left <= process_limits.YOUNG_THRESHOLD
    assert largest <= process_limits.YOUNG_THRESHOLD + 1


def test_importing_the_module_changes_no_threshold() -> None:
    """Only a worker process calls the function."""
    assert gc.get_threshold()[0] < process_limits.YOUNG_THRESHOLD


def test_a_concurrency_beyond_the_file_limit_is_refused() -> None:
    """The message has the number of files it needs, the limit, and a concurrency that fits."""
    with pytest.raises(errors.InvalidSetting) as refused:
        process_limits.check_file_limit(1000, 64, file_limit=4096)
    message = str(refused.value)
    assert "worker_concurrency: 1000 batches of 64 targets (batch_size) may need 64128" in message
    assert "this process may have 4096" in message
    assert "lower worker_concurrency to 62" in refused.value.hint
    process_limits.check_file_limit(62, 64, file_limit=4096)


def test_a_batch_size_beyond_the_file_limit_is_refused() -> None:
    """No concurrency fits: the batch size must change."""
    with pytest.raises(errors.InvalidSetting) as refused:
        process_limits.check_file_limit(1, 1000, file_limit=1024)
    assert refused.value.hint.startswith("lower batch_size")


def test_garbage_of_failures_is_collected_once_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """Young objects only; all of them after a lost connection."""
    now = [1000.0]
    collected: list[int] = []
    monkeypatch.setattr(process_limits.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(process_limits.gc, "collect", collected.append)
    garbage = process_limits.FailureGarbage()
    for second in range(121):
        now[0] = 1000.0 + second
        garbage.collect_if_due()
        if second == 70:
            garbage.note_lost_connection()
    assert collected == [1, 2]
