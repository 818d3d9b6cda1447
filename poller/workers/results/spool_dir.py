"""The spool directory of this process, `spool/<worker>/<destination>/`, and those of dead workers.

A live process holds the lock of its directory. The holder of a lock may take the files and remove
the directory.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from itertools import count
from pathlib import Path
from urllib.parse import quote

from poller.observability import logs

log = logs.get(__name__)


class SpoolDirectory:
    """The directory of one process, safe for threads."""

    def __init__(self, home: Path, runner: str) -> None:
        self._root = home / "spool"
        self._name = quote(runner, safe="@").strip(".")[:200] or "worker"
        self._lock = threading.Lock()
        self._own: Path | None = None
        self._lock_file: int | None = None  # locked as long as this process lives

    def path_for(self, destination: str) -> Path:
        """Return the directory of one destination. Raises OSError."""
        with self._lock:
            if self._own is None:
                self._own = self._claim()
            return _ensure(self._own / destination)

    def adopt(self, destinations: Iterable[str], limit_bytes: int) -> None:
        """Move the files that dead workers left for these destinations here, as far as they fit.

        The rest is left to the next worker that starts: after a crash of the whole host, others
        follow.
        """
        try:
            own = {destination: self.path_for(destination) for destination in destinations}
            free_bytes = limit_bytes - _spool_bytes(own.values())
            others = [path for path in self._root.iterdir() if path.is_dir() and path != self._own]
        except OSError as error:
            log.error("spool_unusable", error=str(error))
            return

        for other in sorted(others):
            try:
                free_bytes -= self._adopt_from(other, own, free_bytes)
            except OSError as error:
                log.error("spool_not_adopted", directory=str(other), error=str(error))
        self._name_unknown(set(own))

    def _name_unknown(self, known: set[str]) -> None:
        """Log the polls that wait for a destination which the settings do not name any more."""
        waiting: Counter[str] = Counter()
        with suppress(OSError):
            for path in self._root.glob("*/*/*.rounds"):
                if path.parent.name not in known:
                    waiting[path.parent.name] += path.lstat().st_size
        for destination, size in sorted(waiting.items()):
            log.warning(
                "spool_of_unknown_sink",
                store=destination,
                bytes=size,
                hint="name the sink in the settings again, or remove its files",
            )

    def _adopt_from(self, other: Path, own: dict[str, Path], free_bytes: int) -> int:
        """Adopt the files of one dead worker. Returns their bytes."""
        lock = _try_lock(other)
        if lock is None:
            return 0  # its worker lives

        adopted_bytes = 0
        try:
            for destination, directory in own.items():
                for path in sorted((other / destination).glob("*.rounds")):
                    size = path.lstat().st_size
                    if adopted_bytes + size > free_bytes:
                        reason = "no room for all of it"
                        log.warning("spool_not_adopted", directory=str(other), error=reason)
                        return adopted_bytes
                    adopted_bytes += size
                    path.rename(_free_path(directory / path.name))
                    log.info("spool_adopted", store=destination, worker=other.name, file=path.name)
            _remove_if_empty(other)
            return adopted_bytes
        finally:
            os.close(lock)

    def _claim(self) -> Path:
        """Lock the first free directory of `name`, `name~2`, ...: prefork children share a name."""
        _ensure(self._root)

        for number in count(1):
            name = self._name if number == 1 else f"{self._name}~{number}"
            path = _ensure(self._root / name)
            with suppress(FileNotFoundError):  # another worker has just removed it
                self._lock_file = _try_lock(path)
                if self._lock_file is not None:
                    return path
        raise AssertionError("unreachable")


def _spool_bytes(directories: Iterable[Path]) -> int:
    """Return the bytes of all spool files in these directories."""
    total = 0
    for directory in directories:
        for path in directory.glob("*.rounds"):
            total += path.stat().st_size
    return total


def _ensure(path: Path) -> Path:
    path.mkdir(mode=0o700, exist_ok=True)
    return path


def _try_lock(directory: Path) -> int | None:
    """Return a descriptor that holds the lock of a directory; None: another process has it."""
    path = directory / "lock"
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    lock = os.open(path, flags, 0o600)

    with suppress(BlockingIOError, FileNotFoundError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # The last holder may remove the file between the two calls: that lock would lock nothing.
        if os.path.samestat(os.fstat(lock), path.stat()):
            return lock
    os.close(lock)
    return None


def _remove_if_empty(directory: Path) -> None:
    """Remove a directory without results: the names of containers never come back.

    Damaged and refused files stay for a person.
    """
    for path in directory.iterdir():
        with suppress(OSError):
            path.rmdir()
    if [path.name for path in directory.iterdir()] == ["lock"]:
        (directory / "lock").unlink()
        with suppress(OSError):  # a worker has just claimed it again
            directory.rmdir()


def _free_path(path: Path) -> Path:
    """Return the path, or the one with the next free number: no file is overwritten."""
    while path.exists():
        stem = f"{path.stem}-"
        if path.stem.isdigit():
            stem = str(int(path.stem) + 1)
        path = path.with_name(f"{stem}{path.suffix}")
    return path
