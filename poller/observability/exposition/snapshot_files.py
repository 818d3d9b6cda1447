"""Snapshots of the metrics of each process of this host, in files that die with their process.

A living process holds the lock of its file, so a reader knows a dead one whatever its end was. A
home may be shared by several hosts or containers: a reader takes the files of its own host only.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from poller.observability.exposition.text_format import Families, Family

DIRECTORY = "metrics"
#: A file of another program is not read beyond this size.
MAX_BYTES = 1_000_000
#: Processes of one name on one host, as far as they are told apart.
MOST_NAMESAKES = 99
_SUFFIX = ".json"
_PROCESS_NUMBER = re.compile(r"\.\d+$")


class SnapshotFiles:
    """The file of this process, and those of the others. Raises OSError."""

    def __init__(self, home: Path, host: str = "") -> None:
        self._directory = home / DIRECTORY
        self._host = quote(host or socket.gethostname(), safe="")
        self._path: Path | None = None
        self._lock: int | None = None  # locked as long as this process lives

    def take_name(self, wanted: str) -> str:
        """Take the file of this name, or of `name#2` while another process lives under it."""
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        for number in range(1, MOST_NAMESAKES + 1):
            name = wanted if number == 1 else f"{wanted}#{number}"
            path = self._directory / f"{self._host}~{quote(name, safe='')}{_SUFFIX}"
            if not _is_held(path):
                self._path = path
                self.write({})
                return name
        raise FileExistsError(f"too many processes are named {wanted}")

    def write(self, families: Families) -> None:
        """Replace the snapshot of this process. The new file is locked before it has its name."""
        if self._path is None:
            return
        temporary = self._path.with_suffix(f".{os.getpid()}")
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        file = os.open(temporary, flags, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _write_all(file, json.dumps(families).encode())
            os.replace(temporary, self._path)
        except OSError:
            os.close(file)
            with suppress(OSError):
                temporary.unlink()
            raise
        self.release()
        self._lock = file

    def others(self) -> Iterator[Families]:
        """The snapshots of the other living processes of this host. Files of dead ones go."""
        with suppress(OSError):
            for path in sorted(self._directory.iterdir()):
                if path == self._path or not _is_snapshot(path):
                    continue
                if not _is_held(path):
                    _remove(path)
                elif path.name.startswith(f"{self._host}~"):
                    yield _read(path)

    def take_duty(self, duty: str) -> int | None:
        """Take a duty that one process of this host has at a time. None while another has it.

        The returned file descriptor holds the duty as long as it is open.
        """
        path = self._directory / f"{self._host}~{duty}.duty"
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if _try_lock(file):
            return file
        os.close(file)
        return None

    def release(self) -> None:
        """Let go of the file without removing it: also what a forked child does first."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _is_snapshot(path: Path) -> bool:
    return path.suffix == _SUFFIX or _PROCESS_NUMBER.search(path.name) is not None


def _is_held(path: Path) -> bool:
    """Whether a living process holds the lock of a file."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return not _try_lock(file, fcntl.LOCK_SH)
    finally:
        os.close(file)


def _remove(path: Path) -> None:
    """Remove the file of a dead process, unless it was replaced a moment ago."""
    with suppress(OSError):
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            is_same = os.fstat(file).st_ino == path.stat().st_ino
            if _try_lock(file) and is_same:
                path.unlink()
        finally:
            os.close(file)


def _try_lock(file: int, kind: int = fcntl.LOCK_EX) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _write_all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def _read(path: Path) -> Families:
    """A snapshot; empty if it cannot be read."""
    try:
        with path.open("rb") as file:
            parsed: Any = json.loads(file.read(MAX_BYTES))
        return {name: Family(*values) for name, values in parsed.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}
