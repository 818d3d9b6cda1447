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

from poller.domain.failures import backoff

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)

Say = Callable[[str, str], None]  # who, what
Wanted = Callable[[str], bool]  # a role's name -> is it meant?

LOG_BYTES = 10_000_000
LOG_FILES = 3
#: A child that lived this long starts with a clean slate when it dies.
HEALTHY_S = 30.0
#: Between two looks at how much memory a child has.
MEMORY_EVERY_S = 1.0
RESTART_BASE_S, RESTART_CAP_S = 0.5, 15.0
#: After a mistake in its configuration, which a person has to mend: longer than all of them need to find it.
MISTAKE_S = 60.0
_MIB = 2**20


@dataclass(frozen=True, slots=True)
class Role:
    """A process to run."""

    name: str
    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    quiet: bool = False  # what it says goes to its file only
    memory_bytes: int = 0  # above this it is stopped softly and replaced; 0: no limit


class Child:
    """One role with its current process."""

    def __init__(self, role: Role, log: logging.Handler | None, say: Say) -> None:
        self.role = role
        self.process: subprocess.Popen[str] | None = None
        self.failures = 0
        self.started_at = 0.0
        self.restart_at: float | None = None
        self.retired = False
        self.replaced_by: float | None = (
            None  # it was asked to make room for its successor, until then
        )
        self.renewed = False  # that was our wish, and no fault of its own
        self._log = log
        self._say = say

    def start(self) -> None:
        self.restart_at = self.replaced_by = None
        self.renewed = False
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

    def ask(self) -> None:
        """To the process alone: what it started is for it to stop, in its own time."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.send_signal(signal.SIGCONT)  # a stopped process cannot obey

    @property
    def rss_bytes(self) -> int:
        """What it has in memory; 0 if nobody knows."""
        try:
            pages = (
                Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
                if self.process
                else "0"
            )
        except (OSError, IndexError):
            return 0
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def mistaken(self) -> bool:
        """It ended for a mistake in its configuration, and was not tried again yet."""
        return (
            not self.running
            and self.process is not None
            and self.process.returncode == os.EX_CONFIG
        )

    def _relay(self, output: IO[str]) -> None:
        for line in output:
            text = line.rstrip()
            if text:
                if self._log is not None:
                    self._log.emit(
                        logging.makeLogRecord({"msg": text.replace("%", "%%"), "args": None})
                    )
                if not self.role.quiet:
                    self._say(self.role.name, text)


class Supervisor:
    """`logs`: where to keep what the children say, if anywhere. `patience_s`: what one may take to make room."""

    def __init__(self, logs: Path | None, say: Say, patience_s: float = 0.0) -> None:
        self.children: list[Child] = []
        self._logs = logs
        self._say = say
        self._patience_s = patience_s
        self._weigh_at = 0.0
        if logs is not None:
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
                    self._start_again(child, now)
            elif not child.running:
                self._plan_restart(child, now)
            elif child.replaced_by is not None and now >= child.replaced_by:
                self._say("poller", f"{child.role.name} did not stop in time: killed")
                child.signal(signal.SIGKILL)
        if now >= self._weigh_at:
            self._weigh_at = now + MEMORY_EVERY_S
            self._weigh(now)

    def hopeless(self, wanted: Wanted) -> bool:
        """None of these can run as it is configured. Each has said why."""
        meant = [child for child in self.children if wanted(child.role.name)]
        return bool(meant) and all(child.mistaken for child in meant)

    def _weigh(self, now: float) -> None:
        """Who has grown beyond its limit is asked to stop; what it was doing it finishes, or hands back."""
        for child in self.children:
            limit, has = child.role.memory_bytes, child.rss_bytes
            if (
                limit
                and has > limit
                and child.running
                and not child.retired
                and child.replaced_by is None
            ):
                child.replaced_by = now + self._patience_s
                text = f"{has / _MIB:.0f} MiB, more than its limit of {limit / _MIB:.0f} MiB"
                self._say("poller", f"{child.role.name} has {text}: it is replaced")
                child.ask()

    def replace(self, wanted: Wanted, patience_s: float) -> None:
        """Each of these finishes what it does, goes, and has a successor at once. Does not wait for it."""
        until = time.monotonic() + patience_s
        for child in self.children:
            if (
                wanted(child.role.name)
                and child.running
                and not child.retired
                and child.replaced_by is None
            ):
                child.replaced_by, child.renewed = until, True
                child.ask()

    def ask(
        self, wanted: Wanted, patience_s: float, enough: Callable[[], bool] = lambda: False
    ) -> None:
        """Ask roles to stop and give them time; who needs longer is not killed yet. They are not restarted.

        `enough` ends the wait: somebody is in a hurry.
        """
        asked = [child for child in self.children if wanted(child.role.name)]
        for child in asked:
            child.retired = True
            child.ask()
        until = time.monotonic() + patience_s
        while any(child.running for child in asked) and time.monotonic() < until and not enough():
            time.sleep(0.02)

    def end(self, wanted: Wanted) -> list[int]:
        """Whatever of these still runs, or left something behind, is killed. Nothing stays. Returns who ran."""
        ended, killed = [child for child in self.children if wanted(child.role.name)], []
        for child in ended:
            if child.process is not None and child.running:
                killed.append(child.process.pid)
                self._say("poller", f"{child.role.name} did not stop in time: killed")
            child.signal(signal.SIGKILL)
        for child in ended:
            if child.process is not None:
                child.process.wait()
        self.children = [child for child in self.children if child not in ended]
        return killed

    def _start_again(self, child: Child, now: float) -> None:
        """If there is no memory, process or thread left for it just now, the others run on, and it is tried later."""
        try:
            child.start()
        except (OSError, RuntimeError) as error:
            if child.running:  # and nobody would read what it says
                child.signal(signal.SIGKILL)
            self._restart_later(child, now, f"cannot be started ({error})")

    def _plan_restart(self, child: Child, now: float) -> None:
        assert child.process is not None
        if child.renewed:
            child.restart_at = now
            return
        if now - child.started_at > HEALTHY_S:
            child.failures = 0
            if child.replaced_by is not None:
                child.restart_at = now
                return
        child.signal(signal.SIGKILL)  # whatever it left behind in its group
        self._restart_later(child, now, _reason(child.process.returncode))

    def _restart_later(self, child: Child, now: float, reason: str) -> None:
        child.failures += 1
        pause = (
            MISTAKE_S
            if child.mistaken
            else backoff.exponential(child.failures, RESTART_BASE_S, RESTART_CAP_S)
        )
        child.restart_at = now + pause
        if not self.hopeless(lambda _: True):  # else it is the end of us all
            self._say("poller", f"{child.role.name} {reason}; starting it again in {pause:g} s")

    def _log_file(self, name: str) -> logging.Handler | None:
        if self._logs is None:
            return None
        handler = logging.handlers.RotatingFileHandler(
            self._logs / f"{name}.log", maxBytes=LOG_BYTES, backupCount=LOG_FILES, encoding="utf-8"
        )
        handler.setFormatter(logging.Formatter("%(message)s"))
        return handler


def _reason(code: int) -> str:
    if code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    return f"ended with exit code {code}" + (", its configuration" if code == os.EX_CONFIG else "")


def _die_with_parent() -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
