"""What was this process collecting when it died? Noted in memory that is shared with a file, and so outlives it.

Writing costs no system call; the kernel keeps the page whatever ends the process. Who lives holds the lock of its file.
"""

from __future__ import annotations

import faulthandler
import fcntl
import mmap
import os
import re
import secrets
import signal
import stat
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from poller.domain.scheduling import queue_routing
from poller.observability import logs
from poller.workers.guard import marks

log = logs.get(__name__)

_NAME_AT, _RELEASES_AT, _FLIGHTS_AT, _WIDTH = marks.SIZE, 1792, 9984, 192
#: Batches that can be noted at a time; a worker with more of them leaves the rest out.
SLOTS = 256
_FAULT_AT = _FLIGHTS_AT + SLOTS * _WIDTH
_SIZE = _FAULT_AT + marks.FAULT_SIZE
_WORDS = 5
_NAME = re.compile(r"\d+-[0-9a-f]+")  # process id, and something random


@dataclass(frozen=True, slots=True)
class Flight:
    """One batch under way. A process uses no number twice: a task that outlives its batch is not taken for the next."""

    number: int
    token: str
    attempt: int
    targets: int
    queue: str

    @property
    def collector(self) -> str:
        return queue_routing.parse(self.queue)[0]


@dataclass(frozen=True, slots=True)
class Wreck:
    """What a dead process left: whose code ran (target 0: nobody's), in which batch (None: one that is over), and
    all batches under way. With a `fault` that code ended it; without, somebody may have killed it just then.
    `releases` says which distribution its collectors came from: who reads this may have others, or none of them."""

    worker: str
    target_id: int
    flight: Flight | None
    flights: tuple[Flight, ...]
    fault: str = ""
    releases: Mapping[str, str] = field(default_factory=dict)


class BlackBox:
    """One per process. Safe for threads; `cells` belong to the loop's."""

    def __init__(self, home: Path, worker: str, releases: Mapping[str, str] | None = None) -> None:
        self._path: Path | None = None
        self._lock: int | None = None  # held as long as this process lives
        try:
            self._page = self._made(home / "flights")
        except OSError as error:  # polling does not depend on it
            log.warning("black_box_unusable", error=str(error))
            self._page = mmap.mmap(-1, _SIZE)
        name = worker.encode()[: _RELEASES_AT - _NAME_AT]
        self._page[_NAME_AT : _NAME_AT + len(name)] = name
        lines = "".join(f"{each}\t{origin}\n" for each, origin in (releases or {}).items())
        told = lines.encode()[: _FLIGHTS_AT - _RELEASES_AT]
        self._page[_RELEASES_AT : _RELEASES_AT + len(told)] = told
        self.cells = memoryview(self._page)[:_NAME_AT].cast("q")
        self.threads = marks.ThreadMarks(self.cells)
        self._queues: dict[int, str] = {}
        self._numbers = count(1)
        self._free = list(range(SLOTS))
        self._guard = threading.Lock()
        self._over = False

    def _made(self, directory: Path) -> mmap.mmap:
        """A file of our own, locked before anybody can see it. It has its blocks: a full disk must not hit us later."""
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = directory / f"{os.getpid()}-{secrets.token_hex(4)}"
        hidden = path.with_name(f".{path.name}")
        self._lock = os.open(hidden, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        os.posix_fallocate(self._lock, 0, _SIZE)
        page = mmap.mmap(self._lock, _SIZE)
        page.madvise(mmap.MADV_DONTFORK)  # a mapping keeps the lock as well as a descriptor does
        hidden.rename(path)
        self._path = path
        os.register_at_fork(
            after_in_child=self._let_go
        )  # a child of a collector's must not hold it beyond our death
        return page

    def _let_go(self) -> None:
        faulthandler.disable()  # else its traces would go to whatever gets the number of our descriptor
        faulthandler.unregister(signal.SIGVTALRM)
        with suppress(OSError, ValueError, BufferError):
            if self._lock is not None:
                os.close(self._lock)
            self.cells.release()
            self._page.close()

    @contextmanager
    def noted(self, token: str, attempt: int, targets: int, queue: str) -> Iterator[int]:
        """While a batch is under way; gives the number of its flight."""
        with self._guard:
            number, slot = next(self._numbers), self._free.pop() if self._free else None
            self._queues[number] = queue
        if slot is not None:
            self._write(slot, f"{number} {token} {attempt} {targets} {queue}".encode())
        try:
            yield number
        finally:
            if slot is not None:
                self._write(slot, b"")
            with self._guard:
                del self._queues[number]
                self._free += [] if slot is None else [slot]

    def collector(self, flight: int) -> str:
        """Of a flight that is under way; empty when it is over."""
        queue = self._queues.get(flight)
        return queue_routing.parse(queue)[0] if queue else ""

    def note_fault(self, text: str) -> None:
        """It is the running code's own fault that we end now, or that of whom the text names: see `marks.verdict`.

        What is under way stays noted as it is: a batch may still come to its end before we do.
        """
        self._over = True
        self._page[_FAULT_AT:_SIZE] = text.encode()[: marks.FAULT_SIZE].ljust(
            marks.FAULT_SIZE, b"\0"
        )

    def keep_faults(self) -> None:
        """A fault in C code, or the watchdog's CPU limit, leaves its place here: files, lines and functions."""
        if self._lock is not None:
            os.lseek(self._lock, _FAULT_AT, os.SEEK_SET)
            with suppress(OSError, ValueError, RuntimeError):
                faulthandler.enable(self._lock)
                faulthandler.register(signal.SIGVTALRM, self._lock, chain=True)

    def _write(self, slot: int, text: bytes) -> None:
        if self._over:
            return
        at = _FLIGHTS_AT + slot * _WIDTH
        self._page[at : at + _WIDTH] = text[:_WIDTH].ljust(_WIDTH, b"\0")

    def now(self) -> Wreck:
        """What would be found if we died here."""
        return _read(self._page[:], "")

    def close(self) -> None:
        """A clean end: nobody has to ask."""
        if self._path is not None:
            with suppress(OSError):
                self._path.unlink()


def forgive(home: Path, pids: Iterable[int]) -> None:
    """We ended these ourselves, and that was nobody's fault: nothing they were collecting is blamed for it."""
    for pid in pids:
        for path in (home / "flights").glob(f"{pid}-*"):
            with suppress(OSError):
                path.unlink()


def open_wrecks(home: Path, explain: Callable[[Wreck], None]) -> None:
    """Has each dead process of this home explained, once in the whole host; if that raises, it stays for later."""
    with suppress(FileNotFoundError):
        for path in sorted((home / "flights").iterdir()):
            if not _NAME.fullmatch(path.name) or (lock := _locked(path)) is None:
                continue
            try:
                explain(_read(os.pread(lock, _SIZE, 0), marks.read_fault(lock, _FAULT_AT)))
                path.unlink()
            finally:
                os.close(lock)


def _locked(path: Path) -> int | None:
    """A descriptor that holds the lock of a dead process's file; None: it lives, or another has just taken it."""
    with suppress(OSError):
        lock = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            found = os.fstat(lock)
            if stat.S_ISREG(found.st_mode) and os.path.samestat(found, path.stat()):
                return lock
        os.close(lock)
    return None


def _read(page: bytes, fault: str) -> Wreck:
    """A page that was cut off in the middle of a word tells less, and harms nobody."""
    page = page.ljust(_SIZE, b"\0")
    cells = memoryview(page)[:_NAME_AT].cast("q")
    flights = {found.number: found for slot in range(SLOTS) if (found := _flight(page, slot))}
    name = page[_NAME_AT:_RELEASES_AT].rstrip(b"\0").decode(errors="replace")
    blamed = marks.blamed(cells, fault)
    target_id, flight = blamed[0] if len(blamed) == 1 else (0, 0)
    return Wreck(
        name, target_id, flights.get(flight), tuple(flights.values()), fault, _releases(page)
    )


def _releases(page: bytes) -> dict[str, str]:
    """Whole lines only: half a version is another one."""
    lines = page[_RELEASES_AT:_FLIGHTS_AT].decode(errors="replace").split("\n")[:-1]
    return {name: origin for name, tab, origin in (line.partition("\t") for line in lines) if tab}


def _flight(page: bytes, slot: int) -> Flight | None:
    at = _FLIGHTS_AT + slot * _WIDTH
    words = page[at : at + _WIDTH].rstrip(b"\0").decode(errors="replace").split(" ", 4)
    if len(words) != _WORDS or not all(words[at].isdigit() for at in (0, 2, 3)):
        return None
    return Flight(int(words[0]), words[1], int(words[2]), int(words[3]), words[4])
