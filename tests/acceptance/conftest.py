"""`up` starts `poller up`; processes that a test leaves running are ended."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.acceptance.programs import POLLER, Up, descendants, is_running


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
        left = descendants(each.process.pid)
        if each.process.poll() is None:
            each.process.kill()
            each.process.wait()
        for pid in left:
            if is_running(pid):
                os.kill(pid, signal.SIGKILL)
