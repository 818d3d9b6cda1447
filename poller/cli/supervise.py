"""A small supervisor: starts children, shows and keeps what they say, restarts what dies, stops all in order.

Every child leads its own process group and dies with us even if we are killed. Only the main thread
starts processes: the kernel ties a child's parent-death signal to the thread that made it.
"""

from __future__ import annotations

import ctypes
import logging.handlers
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from poller.domain import backoff

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)

Say = Callable[[str, str], None]  # who, what
Wanted = Callable[[str], bool]  # a role's name -> is it meant?

LOG_BYTES = 10_000_000
LOG_FILES = 3
#: A child that lived this long starts with a clean slate when it dies.
HEALTHY_S = 30.0
RESTART_BASE_S, RESTART_CAP_S = 0.5, 15.0


@dataclass(frozen=True, slots=True)
class Role:
    """A process to run."""

    name: str
    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    quiet: bool = False  # what it says goes to its file only


class Child:
    """One role with its current process."""

    def __init__(self, role: Role, log: logging.Handler, say: Say) -> None:
        self.role = role
        self.process: subprocess.Popen[str] | None = None
        self.failures = 0
        self.started_at = 0.0
        self.restart_at: float | None = None
        self.retired = False
        self._log = log
        self._say = say

    def start(self) -> None:
        self.restart_at = None
        self.started_at = time.monotonic()
        self.process = subprocess.Popen(
            self.role.argv,
            env={**os.environ, **self.role.env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
            preexec_fn=_die_with_parent,  # noqa: PLW1509  two async-signal-safe calls
        )
        assert self.process.stdout is not None
        threading.Thread(target=self._relay, args=(self.process.stdout,), daemon=True).start()

    def signal(self, number: int) -> None:
        """To the whole group, so that a grandchild never stays behind."""
        if self.process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def _relay(self, output: IO[str]) -> None:
        for line in output:
            text = line.rstrip()
            if text:
                self._log.emit(logging.makeLogRecord({"msg": text.replace("%", "%%"), "args": None}))
                if not self.role.quiet:
                    self._say(self.role.name, text)


class Supervisor:
    def __init__(self, logs: Path, say: Say) -> None:
        self.children: list[Child] = []
        self._logs = logs
        self._say = say
        logs.mkdir(mode=0o700, parents=True, exist_ok=True)

    def add(self, role: Role) -> Child:
        """Start a role now and keep it running."""
        child = Child(role, self._log_file(role.name), self._say)
        self.children.append(child)
        child.start()
        return child

    def look(self) -> None:
        """Restart what died, with growing pauses. Call it a few times a second."""
        now = time.monotonic()
        for child in self.children:
            if child.retired:
                continue
            if child.restart_at is not None:
                if now >= child.restart_at:
                    child.start()
            elif not child.running:
                self._plan_restart(child, now)

    def ask(self, wanted: Wanted, patience_s: float) -> None:
        """Ask roles to stop and give them time; who needs longer is not killed yet. They are not restarted."""
        asked = [child for child in self.children if wanted(child.role.name)]
        for child in asked:
            child.retired = True
            child.signal(signal.SIGTERM)
            child.signal(signal.SIGCONT)  # a stopped process cannot obey
        until = time.monotonic() + patience_s
        while any(child.running for child in asked) and time.monotonic() < until:
            time.sleep(0.02)

    def end(self, wanted: Wanted) -> None:
        """Whatever of these still runs, or left something behind, is killed. Nothing stays."""
        ended = [child for child in self.children if wanted(child.role.name)]
        for child in ended:
            if child.running:
                self._say("poller", f"{child.role.name} did not stop in time: killed")
            child.signal(signal.SIGKILL)
        for child in ended:
            if child.process is not None:
                child.process.wait()
        self.children = [child for child in self.children if child not in ended]

    def _plan_restart(self, child: Child, now: float) -> None:
        assert child.process is not None
        if now - child.started_at > HEALTHY_S:
            child.failures = 0
        child.failures += 1
        pause = backoff.exponential(child.failures, RESTART_BASE_S, RESTART_CAP_S)
        child.restart_at = now + pause
        child.signal(signal.SIGKILL)  # whatever it left behind in its group
        reason = _reason(child.process.returncode)
        self._say("poller", f"{child.role.name} {reason}; starting it again in {pause:g} s")

    def _log_file(self, name: str) -> logging.Handler:
        handler = logging.handlers.RotatingFileHandler(
            self._logs / f"{name}.log", maxBytes=LOG_BYTES, backupCount=LOG_FILES, encoding="utf-8"
        )
        handler.setFormatter(logging.Formatter("%(message)s"))
        return handler


def _reason(code: int) -> str:
    if code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"


def _die_with_parent() -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
