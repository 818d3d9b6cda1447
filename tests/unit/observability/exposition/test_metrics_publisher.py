"""The publisher of the metrics of a process: its thread and its end."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from poller.observability.exposition import snapshot_files
from poller.observability.exposition.metrics_publisher import MetricsPlace, MetricsPublisher


def test_a_stop_waits_for_the_snapshot_that_is_being_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise both close the file, and the second one hits whoever got its number."""
    is_writing, may_end, closed = threading.Event(), threading.Event(), []
    write_all, close = snapshot_files._write_all, snapshot_files.os.close

    def slow_write(file: int, data: bytes) -> None:
        if threading.current_thread().name == "metrics":
            is_writing.set()
            may_end.wait(10)
        write_all(file, data)

    def seen_close(file: int) -> None:
        closed.append(threading.current_thread().name)
        close(file)

    monkeypatch.setattr(snapshot_files, "_write_all", slow_write)
    monkeypatch.setattr(snapshot_files.os, "close", seen_close)
    publisher = MetricsPublisher(tmp_path, MetricsPlace(), "web")
    publisher.start()
    assert is_writing.wait(10)
    stop = threading.Thread(target=publisher.stop, name="stop")
    stop.start()
    stop.join(0.2)
    assert "stop" not in closed
    may_end.set()
    stop.join(10)
    assert not stop.is_alive()
    assert closed[-1] == "stop"


def test_a_publisher_that_never_started_can_be_stopped(tmp_path: Path) -> None:
    publisher: Any = MetricsPublisher(tmp_path, MetricsPlace(), "web")
    publisher.stop()
    assert publisher.address is None
