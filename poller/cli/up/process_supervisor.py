"""A small supervisor: starts child processes, relays their output, restarts and stops them.

Every child leads its own process group and dies with this process even if this process is killed.
Only the main thread starts children: the kernel ties a child's parent-death signal to that thread.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from poller.cli.up.cpu_time import CpuTime
from poller.cli.up.role_logs import RoleLog, RoleLogs
from poller.domain.failures import backoff

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)

PrintLine = Callable[[str, str], None]  # role name, text
RoleFilter = Callable[[str], bool]  # by role name

#: Lines of output that are kept, for the reason why a process ended.
LAST_LINES = 20
#: A child that ran this long restarts without a pause from earlier failures.
HEALTHY_S = 30.0
MEMORY_CHECK_EVERY_S = 1.0
RESTART_BASE_S = 0.5
RESTART_CAP_S = 15.0
#: Pause after a configuration error, which a person must correct. It is long enough for every
#: other child to fail for the same reason first.
MISCONFIGURED_S = 60.0
_STOP_CHECK_S = 0.02
_MIB = 2**20


def any_role(_name: str) -> bool:
    """The role filter that accepts every role."""
    return True


@dataclass(frozen=True, slots=True)
class Role:
    """A process to run."""

    name: str
    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    quiet: bool = False  # its output goes to its log file only
    private_files: bool = False  # only the owner reads the files it makes, whatever the umask
    memory_bytes: int = 0  # above this the process is stopped and replaced; 0 is no limit


class Child:
    """One role with its current process."""

    def __init__(self, role: Role, log: RoleLog | None, print_line: PrintLine) -> None:
        self.role = role
        self.process: subprocess.Popen[str] | None = None
        self.failures = 0
        self.started_mono = 0.0
        self.restart_mono: float | None = None
        self.stopping = False  # this role is not restarted any more
        self.replace_by_mono: float | None = None  # deadline of a process that is being replaced
        self.replace_requested = False  # replaced by `replace`, not for its memory
        self._log = log
        self._print_line = print_line
        self._cpu = CpuTime()
        self._last_lines: deque[str] = deque(maxlen=LAST_LINES)
        self._relay_thread: threading.Thread | None = None

    def start(self) -> None:
        self._cpu.start_process()
        self._last_lines = deque(maxlen=LAST_LINES)
        self.restart_mono = None
        self.replace_by_mono = None
        self.replace_requested = False
        self.started_mono = time.monotonic()
        self.process = subprocess.Popen(
            self.role.argv,
            env={**os.environ, **self.role.env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
            umask=0o077 if self.role.private_files else -1,
            preexec_fn=_die_with_parent,  # noqa: PLW1509  two async-signal-safe calls
        )
        assert self.process.stdout is not None
        arguments = (self.process.stdout, self._last_lines)
        self._relay_thread = threading.Thread(target=self._relay, args=arguments, daemon=True)
        self._relay_thread.start()

    def signal(self, number: int) -> None:
        """Signal the whole process group, so that no grandchild stays behind."""
        if self.process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)

    def terminate(self) -> None:
        """Signal the process alone, which stops its own children in its own time."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.send_signal(signal.SIGCONT)  # a suspended process handles no SIGTERM

    def replace(self, by_mono: float) -> None:
        """Stop the process; the supervisor starts a successor, or kills it after the deadline."""
        self.replace_by_mono = by_mono
        self.terminate()

    @property
    def rss_bytes(self) -> int:
        """Resident memory of the process; 0 if it cannot be read."""
        if self.process is None:
            return 0

        try:
            pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        except (OSError, IndexError):
            return 0

        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def read_cpu_ms(self) -> float:
        """CPU time of this role so far, with that of its ended processes."""
        if self.process is not None and self.process.returncode is None:
            self._cpu.read(self.process.pid)
        return self._cpu.total_ms

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def replaceable(self) -> bool:
        """True if the process runs and is neither stopping nor being replaced."""
        return self.running and not self.stopping and self.replace_by_mono is None

    @property
    def misconfigured(self) -> bool:
        """True after the process ended with a configuration error, until it starts again."""
        if self.process is None or self.running:
            return False
        return self.process.returncode == os.EX_CONFIG

    def last_lines(self) -> list[str]:
        """The last output of a process that ended."""
        if self._relay_thread is not None:
            self._relay_thread.join(timeout=1)
        return list(self._last_lines)

    def _relay(self, output: IO[str], last_lines: deque[str]) -> None:
        """Copy the lines of a process to its log file and, unless it is quiet, to the terminal."""
        for line in output:
            text = line.rstrip()
            if not text:
                continue

            last_lines.append(text)
            if self._log is not None:
                self._log.write_line(text)
            if not self.role.quiet:
                self._print_line(self.role.name, text)


class Supervisor:
    """Keeps roles running.

    `patience_s` is the time a process above its memory limit has to stop.
    """

    def __init__(self, logs: Path | None, print_line: PrintLine, patience_s: float = 0.0) -> None:
        """Start with no role. `logs` is the folder of the roles' log files, if there is one."""
        self.children: list[Child] = []
        self._logs = RoleLogs(logs, self._note) if logs is not None else None
        self._print_line = print_line
        self._patience_s = patience_s
        self._check_memory_mono = 0.0

    def add(self, role: Role) -> Child:
        """Start a role and keep it running."""
        log = self._logs.open(role.name) if self._logs is not None else None
        child = Child(role, log, self._print_line)
        self.children.append(child)
        child.start()
        return child

    def check(self) -> None:
        """Restart ended processes, with growing pauses. Call this a few times a second."""
        now = time.monotonic()
        for child in self.children:
            if not child.stopping:
                self._check_child(child, now)

        if now >= self._check_memory_mono:
            self._check_memory_mono = now + MEMORY_CHECK_EVERY_S
            self._check_memory(now)

    def _check_child(self, child: Child, now: float) -> None:
        """Restart an ended process when its time has come; kill one past its deadline."""
        if child.restart_mono is not None:
            if now >= child.restart_mono:
                self._restart(child, now)
        elif not child.running:
            self._plan_restart(child, now)
        elif child.replace_by_mono is not None and now >= child.replace_by_mono:
            self._note(f"{child.role.name} did not stop in time: killed")
            child.signal(signal.SIGKILL)

    def _check_memory(self, now: float) -> None:
        """Replace processes above their memory limit; each finishes or hands back its polls.

        The CPU time is read here too, so that a process that ends misses a second of it at most.
        """
        for child in self.children:
            child.read_cpu_ms()  # an ended process has no CPU time to read any more
            limit = child.role.memory_bytes
            used = child.rss_bytes
            if limit and used > limit and child.replaceable:
                text = f"{used / _MIB:.0f} MiB, more than its limit of {limit / _MIB:.0f} MiB"
                self._note(f"{child.role.name} has {text}: it is replaced")
                child.replace(now + self._patience_s)

    def cpu_ms(self) -> dict[str, float]:
        """CPU time so far by role name; restarts of a role add up."""
        return {child.role.name: child.read_cpu_ms() for child in self.children}

    def all_misconfigured(self, chosen: RoleFilter) -> bool:
        """True if there are such roles and each ended with a configuration error."""
        children = self._chosen(chosen)
        return bool(children) and all(child.misconfigured for child in children)

    def replace(self, chosen: RoleFilter, patience_s: float) -> None:
        """Start successors of these processes as soon as each has finished. Does not wait."""
        until_mono = time.monotonic() + patience_s
        for child in self._chosen(chosen):
            if child.replaceable:
                child.replace_requested = True
                child.replace(until_mono)

    def stop(
        self, chosen: RoleFilter, patience_s: float, hurry: Callable[[], bool] = lambda: False
    ) -> None:
        """Terminate roles for good and wait for them. Nothing is killed; `hurry` ends the wait."""
        children = self._chosen(chosen)
        for child in children:
            child.stopping = True
            child.terminate()

        until_mono = time.monotonic() + patience_s
        while any(child.running for child in children):
            if time.monotonic() >= until_mono or hurry():
                return
            time.sleep(_STOP_CHECK_S)

    def kill(self, chosen: RoleFilter) -> list[int]:
        """Kill these processes and their groups.

        Returns the ids of the processes that still ran.
        """
        children = self._chosen(chosen)

        killed = []
        for child in children:
            if child.process is not None and child.running:
                killed.append(child.process.pid)
                self._note(f"{child.role.name} did not stop in time: killed")
            child.signal(signal.SIGKILL)

        for child in children:
            if child.process is not None:
                child.process.wait()

        self.children = [child for child in self.children if child not in children]
        return killed

    def _chosen(self, chosen: RoleFilter) -> list[Child]:
        """The children whose role the filter accepts."""
        return [child for child in self.children if chosen(child.role.name)]

    def _restart(self, child: Child, now: float) -> None:
        """Start a child. Without memory, processes or threads for it, plan the next try."""
        try:
            child.start()
        except (OSError, RuntimeError) as error:
            if child.running:  # its relay thread is missing, so its output would block it
                child.signal(signal.SIGKILL)
            self._restart_later(child, now, f"cannot be started ({error})")

    def _plan_restart(self, child: Child, now: float) -> None:
        """Restart a replaced process at once, a failed one after a pause."""
        assert child.process is not None
        if child.replace_requested:
            child.restart_mono = now
            return
        if now - child.started_mono > HEALTHY_S:
            child.failures = 0
            if child.replace_by_mono is not None:
                child.restart_mono = now
                return

        child.signal(signal.SIGKILL)  # processes that it left behind in its group
        self._restart_later(child, now, _reason(child.process.returncode))

    def _restart_later(self, child: Child, now: float, reason: str) -> None:
        """Plan the next start after a pause that grows with every failure."""
        child.failures += 1
        if child.misconfigured:
            pause = MISCONFIGURED_S
        else:
            pause = backoff.exponential(child.failures, RESTART_BASE_S, RESTART_CAP_S)

        child.restart_mono = now + pause
        if not self.all_misconfigured(any_role):  # otherwise the caller ends with an error
            plan = f"starting it again in {pause:g} s"
            self._note(f"{child.role.name} {reason}; {plan}")

    def _note(self, text: str) -> None:
        self._print_line("poller", text)


def _reason(code: int) -> str:
    """`was ended by SIGKILL`, or `ended with exit code 3`."""
    if code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    if code == os.EX_CONFIG:
        return f"ended with exit code {code}, its configuration"
    return f"ended with exit code {code}"


def _die_with_parent() -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
