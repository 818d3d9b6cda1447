"""The leader's watch over the files of `rule_files`: a changed file is applied within 30 s.

A wrong file changes nothing: the rules stay as the last good file said, and an event tells it once.
A file that is gone changes nothing either; a file with `rules: []` removes its rules.
"""

from __future__ import annotations

import glob
import socket
import threading
from collections.abc import Sequence

from poller import errors
from poller.beat.alerts import rule_file
from poller.beat.leadership import Leader
from poller.bootstrap import Services
from poller.db.alerts.rules.owned_rules import Replaced
from poller.domain.access.actor import Actor, ActorKind
from poller.domain.record.event_kinds import Event, Kind
from poller.event_publisher import EventLog, LogOnly
from poller.observability import logs

log = logs.get(__name__)

CHECK_EVERY_S = 30.0
#: Files that are read in one pass.
MOST_FILES = 200
#: The reason that wakes the leader after a change of rules.
WAKE = "rules"


class RuleFileWatch:
    """Applies the files of rules while this process leads."""

    def __init__(
        self,
        services: Services,
        leader: Leader,
        stopping: threading.Event,
        events: EventLog | None = None,
    ) -> None:
        self._engine = services.engine
        self._board = services.board
        self._patterns = services.settings.rule_files
        self._leader = leader
        self._stopping = stopping
        self._events = events or LogOnly()
        self._faults: dict[str, str] = {}  # by file or pattern, as they were told last
        self._thread = threading.Thread(target=self._run, name="rule-files", daemon=True)

    def start(self) -> None:
        """Start the thread, if the settings name files."""
        if self._patterns:
            self._thread.start()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                if self._leader.leads:
                    self.check(self._board.now_ms())
            except errors.StoreError as error:
                log.warning("rule_files_not_checked", error=str(error))
            except Exception:  # door: the end of this thread; it must not die
                log.exception("rule_file_watch_broke")
            self._stopping.wait(CHECK_EVERY_S)

    def check(self, now_ms: int) -> None:
        """Apply every file that differs from its stored rules. Raises StoreError."""
        for pattern in self._patterns:
            paths = matching(pattern)
            self._tell_fault(pattern, "" if paths else "no such file", now_ms)
            for path in paths:
                self._apply(path, now_ms)

    def _apply(self, path: str, now_ms: int) -> None:
        try:
            file = rule_file.read(path)
            done = rule_file.apply(self._engine, file, _actor())
        except errors.InvalidInput as error:
            hint = f"; {error.hint}" if error.hint else ""
            fault = f"{error}{hint}".removeprefix(path).lstrip(":, ")
            self._tell_fault(path, fault, now_ms)
            return
        self._tell_fault(path, "", now_ms)
        if done != Replaced(unchanged=len(file.rules)):
            self._events.record(_applied(file.path, done, now_ms))
            self._board.wake(WAKE)

    def _tell_fault(self, path: str, fault: str, now_ms: int) -> None:
        """Tell a fault when it begins or changes, not at every pass. "" is none."""
        if fault and fault != self._faults.get(path):
            message = f"rules of {path} were refused, the old ones stay: {fault}"
            data = {"file": path, "fault": fault}
            self._events.record(Event(now_ms, Kind.RULE_FILE_REFUSED, message, data=data))
        if not fault and self._faults.get(path):
            message = f"rules of {path} can be used again"
            data = {"file": path}
            self._events.record(Event(now_ms, Kind.RULE_FILE_APPLIED, message, data=data))
        self._faults[path] = fault


def matching(pattern: str) -> Sequence[str]:
    """Return the files of a path or pattern, in the order of names."""
    return sorted(glob.glob(pattern, recursive=False))[:MOST_FILES]


def _actor() -> Actor:
    return Actor("rule_files", ActorKind.SYSTEM, socket.gethostname())


def _applied(path: str, done: Replaced, now_ms: int) -> Event:
    counts = {
        "added": len(done.added),
        "changed": len(done.changed),
        "removed": len(done.removed),
    }
    told = ", ".join(f"{count} {verb}" for verb, count in counts.items() if count)
    message = f"rules of {path} were applied: {told}"
    return Event(now_ms, Kind.RULE_FILE_APPLIED, message, data={"file": path, **counts})
