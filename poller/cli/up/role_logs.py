"""The log files of the roles of `poller up`. A disk that is full is said once, then counted."""

from __future__ import annotations

import logging
import logging.handlers
import os
import sys
import threading
import time
from collections.abc import Callable
from io import TextIOWrapper
from pathlib import Path

from poller.presentation import formatting

LOG_BYTES = 10_000_000
LOG_FILES = 3
#: A failure that lasts is said again after this long.
REPEAT_S = 60.0
#: After this long without a failure the files are written again. A full disk takes a line now and
#: then.
WELL_S = 5.0


class PrivateLogFile(logging.handlers.RotatingFileHandler):
    """A rotating log file that only its owner reads, whatever the umask."""

    def _open(self) -> TextIOWrapper:
        descriptor = os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        return open(descriptor, "a", encoding=self.encoding, errors=self.errors)


class RoleLogs:
    """The folder with one file for each role. `say` prints a line to the terminal."""

    def __init__(self, folder: Path, say: Callable[[str], None]) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder = folder
        self._say = say
        self._lock = threading.Lock()
        self._lost = 0  # lines of the present failure; 0: the files are written
        self._failed_mono = 0.0
        self._said_mono = 0.0

    def open(self, role: str) -> RoleLog:
        """Return the rotating file of a role."""
        return RoleLog(self, self._folder / f"{role}.log")

    def note_failure(self, error: BaseException | None) -> None:
        """Count a line that could not be written, and say so once a minute."""
        with self._lock:
            now_mono = time.monotonic()
            is_new = self._lost == 0
            self._lost += 1
            self._failed_mono = now_mono
            if not is_new and now_mono < self._said_mono + REPEAT_S:
                return
            self._said_mono = now_mono
            lost = self._lost
        reason = getattr(error, "strerror", None) or str(error)
        lines = "" if is_new else f"; {formatting.counted(lost, 'line')} so far"
        self._say(f"cannot write to {self._folder}: {reason}{lines}")

    def note_success(self) -> None:
        """Say how many lines are missing, some seconds after the last failure."""
        if not self._lost:
            return
        with self._lock:
            if not self._lost or time.monotonic() < self._failed_mono + WELL_S:
                return
            lost, self._lost = self._lost, 0
        missing = formatting.counted(lost, "line")
        self._say(f"{self._folder} can be written again; up to {missing} missing")


class RoleLog(PrivateLogFile):
    """The file of one role. Its failures are the folder's."""

    def __init__(self, logs: RoleLogs, path: Path) -> None:
        super().__init__(path, maxBytes=LOG_BYTES, backupCount=LOG_FILES, encoding="utf-8")
        self.setFormatter(logging.Formatter("%(message)s"))
        self._logs = logs
        self._has_failed = False

    def write_line(self, text: str) -> None:
        """Write one line. Never raises."""
        self._has_failed = False
        self.emit(logging.makeLogRecord({"msg": text, "args": None}))
        if not self._has_failed:
            self._logs.note_success()

    def handleError(self, record: logging.LogRecord) -> None:
        self._has_failed = True
        self._logs.note_failure(sys.exc_info()[1])
