"""The log files of roles on a disk that is full: one line on the terminal, not one per line."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from poller.cli.up import role_logs
from poller.cli.up.role_logs import RoleLog, RoleLogs

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class FullDisk:
    """A stream whose writes fail."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, _: str) -> int:
        raise FULL

    def __getattr__(self, name: str) -> Any:
        return lambda *_: 0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(role_logs.time, "monotonic", lambda: now[0])
    return now


def fill_disk(log: RoleLog, path: Path) -> Any:
    """Let writes fail; returns the stream to put back."""
    stream = log.stream
    log.stream = FullDisk(path)  # type: ignore[assignment]
    return stream


def test_a_full_disk_is_said_once_a_minute_and_counted(
    tmp_path: Path, clock: list[float], capfd: pytest.CaptureFixture[str]
) -> None:
    """14,000 lines of tracebacks in two minutes were one for each line of each role."""
    said: list[str] = []
    logs = RoleLogs(tmp_path, said.append)
    roles = [logs.open("beat"), logs.open("worker1")]
    for log in roles:
        fill_disk(log, tmp_path)

    for second in range(120):
        clock[0] = 1000.0 + second
        for log in roles:
            log.write_line("tick_failed 100 %")

    assert said == [
        f"cannot write to {tmp_path}: No space left on device",
        f"cannot write to {tmp_path}: No space left on device; 121 lines so far",
    ]
    assert capfd.readouterr().err == ""


def test_the_end_of_a_failure_is_said_with_the_lines_that_are_missing(
    tmp_path: Path, clock: list[float]
) -> None:
    """Not at the first line that a full disk takes."""
    said: list[str] = []
    logs = RoleLogs(tmp_path, said.append)
    log = logs.open("beat")
    stream = fill_disk(log, tmp_path)
    for _ in range(3):
        log.write_line("lost")
    log.stream = stream

    log.write_line("kept 100 %")
    assert len(said) == 1
    clock[0] += role_logs.WELL_S
    log.write_line("kept too")
    log.write_line("and this")

    assert said[1:] == [f"{tmp_path} can be written again; up to 3 lines missing"]
    assert (tmp_path / "beat.log").read_text() == "kept 100 %\nkept too\nand this\n"
