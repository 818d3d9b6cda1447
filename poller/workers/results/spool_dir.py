"""Which directory is this process's own, and what did dead ones leave? `spool/<worker>/<destination>/`.

Who lives holds the lock of his directory; who holds a lock may take what is there, and remove it.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterable
from contextlib import suppress
from itertools import count
from pathlib import Path
from urllib.parse import quote

from poller.observability import logs

log = logs.get(__name__)


class SpoolHome:
    """Safe for threads."""

    def __init__(self, home: Path, runner: str) -> None:
        self._root = home / "spool"
        self._name = quote(runner, safe="@").strip(".")[:200] or "worker"
        self._guard = threading.Lock()
        self._mine: Path | None = None
        self._lock: int | None = None  # held as long as this process lives

    def place(self, destination: str) -> Path:
        """The directory of one destination, ours alone. Raises OSError."""
        with self._guard:
            if self._mine is None:
                self._mine = self._claim()
            return _made(self._mine / destination)

    def adopt(self, destinations: Iterable[str], room_bytes: int) -> None:
        """What dead workers left for these destinations becomes ours, as far as there is room for it.

        The rest is left to whoever starts next: after a crash of the whole host, its other workers.
        """
        try:
            own = {destination: self.place(destination) for destination in destinations}
            others = sorted(
                path for path in self._root.iterdir() if path.is_dir() and path != self._mine
            )
            left = room_bytes - sum(
                path.stat().st_size for place in own.values() for path in place.glob("*.rounds")
            )
        except OSError as error:
            log.error("spool_unusable", error=str(error))
            return
        for other in others:
            try:
                left -= self._adopt_from(other, own, left)
            except OSError as error:
                log.error("spool_not_adopted", directory=str(other), error=str(error))

    def _adopt_from(self, other: Path, own: dict[str, Path], room_bytes: int) -> int:
        lock = _locked(other)
        if lock is None:
            return 0  # somebody lives there
        adopted = 0
        try:
            for destination, place in own.items():
                for path in sorted((other / destination).glob("*.rounds")):
                    if adopted + path.lstat().st_size > room_bytes:
                        log.warning(
                            "spool_not_adopted", directory=str(other), error="no room for all of it"
                        )
                        return adopted
                    adopted += path.lstat().st_size
                    path.rename(_free(place / path.name))
                    log.info("spool_adopted", store=destination, worker=other.name, file=path.name)
            _remove_if_empty(other)
            return adopted
        finally:
            os.close(lock)

    def _claim(self) -> Path:
        """The first of `name`, `name~2`, ... that nobody holds: processes of one prefork worker share a name."""
        _made(self._root)
        for number in count(1):
            path = _made(self._root / (self._name if number == 1 else f"{self._name}~{number}"))
            with suppress(FileNotFoundError):  # an heir has just removed it
                self._lock = _locked(path)
                if self._lock is not None:
                    return path
        raise AssertionError("unreachable")


def _made(path: Path) -> Path:
    path.mkdir(mode=0o700, exist_ok=True)
    return path


def _locked(directory: Path) -> int | None:
    """A descriptor that holds the directory's lock until it is closed, or the process ends; None: another has it."""
    path = directory / "lock"
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with suppress(BlockingIOError, FileNotFoundError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Its last holder may have removed the file between our two calls: then we hold a lock on nothing.
        if os.path.samestat(os.fstat(lock), path.stat()):
            return lock
    os.close(lock)
    return None


def _remove_if_empty(directory: Path) -> None:
    """Worker names of containers never come back. What a person should look at stays."""
    for place in directory.iterdir():
        with suppress(OSError):
            place.rmdir()
    if [path.name for path in directory.iterdir()] == ["lock"]:
        (directory / "lock").unlink()
        with suppress(OSError):  # somebody has just moved in again
            directory.rmdir()


def _free(path: Path) -> Path:
    """The same name, or the next number that is not taken: nothing is written over."""
    while path.exists():
        path = path.with_name(
            f"{int(path.stem) + 1 if path.stem.isdigit() else path.stem + '-'}{path.suffix}"
        )
    return path
