"""`up` starts `poller up`; processes that a test leaves running are ended."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.acceptance.programs import POLLER, Up, descendants, eventually, is_running


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Callable[..., Up]]:
    """Start `poller up`; processes that a test leaves running are ended."""
    started: list[Up] = []

    def start(
        *arguments: str, home: Path | None = None, program: Sequence[str] = POLLER, **env: str
    ) -> Up:
        made = Up(home or tmp_path / "home", *arguments, program=program, **env)
        started.append(made)
        return made

    yield start
    for each in started:
        _end(each)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """A demo that the tests of a file share: 60 devices, two more sinks, one of them dead."""
    nobody = "remote_write=http://127.0.0.1:1/api/v1/write"
    fleet = ("--demo", "--devices", "60", "--workers", "1")
    home = tmp_path_factory.mktemp("demo") / "home"
    running = Up(home, *fleet, "--sink", "stream", "--sink", nobody)
    try:
        eventually(lambda: running.polls() >= 10, 90, "some polls")
        yield running
    finally:
        _end(running)


def _end(up: Up) -> None:
    left = descendants(up.process.pid)
    if up.process.poll() is None:
        up.process.kill()
        up.process.wait()
    for pid in left:
        if is_running(pid):
            os.kill(pid, signal.SIGKILL)
