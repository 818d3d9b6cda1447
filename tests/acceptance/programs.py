"""Whole programs, started as a user would start them, and observed from outside."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

POLLER = [sys.executable, "-m", "poller"]


def environment(home: Path, **more: str) -> dict[str, str]:
    """Return a clean environment with only these settings of poller."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("POLLER_")}
    return {**clean, "POLLER_HOME": str(home), **more}


def eventually(condition: Callable[[], Any], within_s: float, what: str) -> Any:
    """Return the first true value, or fail with a description of the condition."""
    until = time.monotonic() + within_s
    while True:
        try:
            answer = condition()
        except (
            AssertionError,
            OSError,
            ValueError,
            LookupError,
            StopIteration,
            subprocess.SubprocessError,
        ):
            answer = None
        if answer:
            return answer
        if time.monotonic() > until:
            pytest.fail(f"not within {within_s:g} s: {what}")
        time.sleep(0.1)


def descendants(pid: int) -> dict[int, str]:
    """Return process ids and command lines of all children of a process, and their children."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int(
                    (entry / "stat").read_text().rpartition(")")[2].split()[1]
                )
            except (OSError, IndexError):
                continue
    found: dict[int, str] = {}
    frontier = {pid}
    while frontier:
        frontier = {child for child, parent in parents.items() if parent in frontier}
        found.update({child: command_line(child) for child in frontier})
    return found


def command_line(pid: int) -> str:
    try:
        return (
            Path(f"/proc/{pid}/cmdline")
            .read_bytes()
            .replace(b"\0", b" ")
            .decode(errors="replace")
            .strip()
        )
    except OSError:
        return ""


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (OSError, IndexError):
        return False


class Up:
    """A running `poller up`."""

    def __init__(
        self, home: Path, *arguments: str, program: Sequence[str] = POLLER, **env: str
    ) -> None:
        self.home = home
        self._program = program
        self.env = environment(home, **env)
        self.log = home.parent / f"{home.name}.up.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*program, "up", *arguments], env=self.env, cwd=home.parent, stdout=log, stderr=log
            )

    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def child(self, words: str) -> int:
        """Return the process id of the child whose command line contains these words."""
        return next(pid for pid, line in descendants(self.process.pid).items() if words in line)

    def run(self, *arguments: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
        """Run a command, as in another terminal."""
        return subprocess.run(
            [*self._program, *arguments],
            env=self.env,
            cwd=self.home.parent,
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    def polls(self) -> int:
        status = json.loads(self.run("status", "--json").stdout)
        return int(status["totals"].get("polls", 0))

    def stop(self, number: int = signal.SIGTERM, within_s: float = 10) -> float:
        """Stop the program and return the seconds that it took."""
        began = time.monotonic()
        self.process.send_signal(number)
        self.process.wait(timeout=within_s)
        return time.monotonic() - began
