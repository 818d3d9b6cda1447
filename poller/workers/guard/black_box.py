"""The black box of a worker process: its running batches and code, in memory shared with a file.

A write costs no system call, and the kernel keeps the page however the process ends. A live
process holds the lock of its file. `crash_report` reads the files of dead processes.
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

from poller.domain.jobs import job_queue
from poller.domain.scheduling import queue_routing
from poller.observability import logs
from poller.workers.guard import running_code

log = logs.get(__name__)

#: Batches that are recorded at a time. A worker with more of them leaves the rest out.
SLOTS = 256
_SLOT_SIZE = 192
#: The page: marks of running code, worker name, releases of collectors, batches, fault.
_NAME_AT = running_code.SIZE
_RELEASES_AT = 1792
_BATCHES_AT = 9984
_FAULT_AT = _BATCHES_AT + SLOTS * _SLOT_SIZE
_SIZE = _FAULT_AT + running_code.FAULT_SIZE
_DIRECTORY = "flights"
_FILE_NAME = re.compile(r"\d+-[0-9a-f]+")  # process id, and a random part
_BATCH = re.compile(r"(\d+) ([^ ]*) (\d+) (\d+) (.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class RunningBatch:
    """One batch that was running.

    A process uses each number once, so a task cannot outlive its batch unnoticed.
    """

    number: int
    token: str
    attempt: int
    targets: int
    queue: str

    @property
    def collector(self) -> str:
        collector, _ = queue_routing.parse(self.queue)
        return collector


@dataclass(frozen=True, slots=True)
class CrashRecord:
    """The contents of the black box of a dead process.

    With a `fault` the running code ended the process; without one, the process may have been
    killed. `releases` names the distribution of each collector: the reader may have others.
    """

    worker: str
    target_id: int  # whose code ran; 0: none
    batch: RunningBatch | None  # the batch of that target; None: the batch had ended
    batches: tuple[RunningBatch, ...]
    fault: str = ""
    releases: Mapping[str, str] = field(default_factory=dict)
    jobs: tuple[str, ...] = ()  # jobs that were running


class BlackBox:
    """One per process, safe for threads; only the loop's thread writes the first `cells`."""

    def __init__(self, home: Path, worker: str, releases: Mapping[str, str] | None = None) -> None:
        self._path: Path | None = None
        self._lock_file: int | None = None  # locked as long as this process lives
        try:
            self._page = self._create_file(home / _DIRECTORY)
        except OSError as error:  # polling does not depend on the file
            log.warning("black_box_unusable", error=str(error))
            self._page = mmap.mmap(-1, _SIZE)

        lines = [f"{name}\t{release}\n" for name, release in (releases or {}).items()]
        self._put_text(worker, _NAME_AT, _RELEASES_AT)
        self._put_text("".join(lines), _RELEASES_AT, _BATCHES_AT)

        self.cells = memoryview(self._page)[:_NAME_AT].cast("q")
        self.thread_marks = running_code.ThreadMarks(self.cells)
        self._queues: dict[int, str] = {}
        self._numbers = count(1)
        self._free = list(range(SLOTS))
        self._lock = threading.Lock()
        self._is_frozen = False

    def _create_file(self, directory: Path) -> mmap.mmap:
        """Create a file and lock it before another process can see it.

        All its blocks are allocated at once: a disk that is full later must not end this process.
        """
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = directory / f"{os.getpid()}-{secrets.token_hex(4)}"
        hidden = path.with_name(f".{path.name}")
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._lock_file = os.open(hidden, flags, 0o600)
        fcntl.flock(self._lock_file, fcntl.LOCK_EX)
        os.posix_fallocate(self._lock_file, 0, _SIZE)

        page = mmap.mmap(self._lock_file, _SIZE)
        page.madvise(mmap.MADV_DONTFORK)  # a mapping keeps the lock as a descriptor does
        hidden.rename(path)
        self._path = path

        # A process that a collector forks must not hold the lock after this one has died.
        os.register_at_fork(after_in_child=self._release_in_child)
        return page

    def _release_in_child(self) -> None:
        # Otherwise the child's traces go to any file that reuses the number of the descriptor.
        faulthandler.disable()
        faulthandler.unregister(signal.SIGVTALRM)
        with suppress(OSError, ValueError, BufferError):
            if self._lock_file is not None:
                os.close(self._lock_file)
            self.cells.release()
            self._page.close()

    def _put_text(self, text: str, start: int, end: int) -> None:
        """Write a text to the page, cut off at `end`."""
        size = end - start
        data = text.encode()[:size]
        end = start + len(data)
        self._page[start:end] = data

    @contextmanager
    def record_batch(self, token: str, attempt: int, targets: int, queue: str) -> Iterator[int]:
        """Record a batch while the context lasts; gives the number of the batch."""
        with self._lock:
            number = next(self._numbers)
            slot = self._free.pop() if self._free else None
            self._queues[number] = queue

        if slot is not None:
            self._put_batch(slot, f"{number} {token} {attempt} {targets} {queue}")

        try:
            yield number
        finally:
            if slot is not None:
                self._put_batch(slot, "")

            with self._lock:
                del self._queues[number]
                if slot is not None:
                    self._free.append(slot)

    @contextmanager
    def record_job(self, name: str) -> Iterator[None]:
        """Record a running job while the context lasts, in the slot of a batch without targets."""
        with self.record_batch("", 0, 0, job_queue.QUEUE_PREFIX + name):
            yield

    def _put_batch(self, slot: int, text: str) -> None:
        if self._is_frozen:
            return

        start = _BATCHES_AT + slot * _SLOT_SIZE
        end = start + _SLOT_SIZE
        data = text.encode()[:_SLOT_SIZE]
        self._page[start:end] = data.ljust(_SLOT_SIZE, b"\0")

    def collector_of(self, batch_number: int) -> str:
        """Return the collector of a running batch; empty when the batch has ended."""
        queue = self._queues.get(batch_number)
        if queue is None:
            return ""
        collector, _ = queue_routing.parse(queue)
        return collector

    def record_fault(self, text: str) -> None:
        """Record why this process is about to end; see `running_code.blame` for the poll to blame.

        The recorded batches stay as they are from now on: a batch may end before the process does.
        """
        self._is_frozen = True
        size = running_code.FAULT_SIZE
        data = text.encode()[:size]
        self._page[_FAULT_AT:_SIZE] = data.ljust(size, b"\0")

    def enable_faulthandler(self) -> None:
        """Have faults in C code and CPU limits write their stack to this file."""
        if self._lock_file is None:
            return

        os.lseek(self._lock_file, _FAULT_AT, os.SEEK_SET)
        with suppress(OSError, ValueError, RuntimeError):
            faulthandler.enable(self._lock_file)
            faulthandler.register(signal.SIGVTALRM, self._lock_file, chain=True)

    def snapshot(self) -> CrashRecord:
        """Return the record that a reader would get if this process died now."""
        return _parse(self._page[:], "")

    def close(self) -> None:
        """Delete the file: the process ends cleanly."""
        if self._path is not None:
            with suppress(OSError):
                self._path.unlink()


def discard(home: Path, pids: Iterable[int]) -> None:
    """Delete the black boxes of processes that were killed on purpose: no collector is to blame."""
    for pid in pids:
        for path in (home / _DIRECTORY).glob(f"{pid}-*"):
            with suppress(OSError):
                path.unlink()


def read_crashes(home: Path, report: Callable[[CrashRecord], None]) -> None:
    """Pass the record of each dead process to `report`, once on the whole host.

    A record for which `report` raises stays for the next reader, and the error is raised.
    """
    paths: list[Path] = []
    with suppress(FileNotFoundError):  # no worker has run on this home yet
        paths = sorted((home / _DIRECTORY).iterdir())
    for path in paths:
        if not _FILE_NAME.fullmatch(path.name):
            continue
        descriptor = _lock_dead(path)
        if descriptor is None:
            continue

        try:
            page = os.pread(descriptor, _SIZE, 0)
            fault = running_code.read_fault(descriptor, _FAULT_AT)
            report(_parse(page, fault))
            path.unlink(missing_ok=True)
        finally:
            os.close(descriptor)


def _lock_dead(path: Path) -> int | None:
    """Return a descriptor that holds the lock of a dead process's file.

    None: the process lives, or another reader has the file.
    """
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    with suppress(OSError):
        descriptor = os.open(path, flags)
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            status = os.fstat(descriptor)
            if stat.S_ISREG(status.st_mode) and os.path.samestat(status, path.stat()):
                return descriptor
        os.close(descriptor)
    return None


def _parse(page: bytes, fault: str) -> CrashRecord:
    """Parse a page. A damaged page gives less, and raises nothing."""
    page = page.ljust(_SIZE, b"\0")
    name = page[_NAME_AT:_RELEASES_AT].rstrip(b"\0")

    batches: dict[int, RunningBatch] = {}
    jobs: list[str] = []
    for slot in range(SLOTS):
        batch = _parse_batch(page, slot)
        if batch is None:
            continue
        if batch.queue.startswith(job_queue.QUEUE_PREFIX):
            jobs.append(batch.queue.removeprefix(job_queue.QUEUE_PREFIX))
        else:
            batches[batch.number] = batch

    cells = memoryview(page)[:_NAME_AT].cast("q")
    suspects = running_code.suspects(cells, fault)
    blamed = running_code.RunningPoll(0, 0)
    if len(suspects) == 1:
        blamed = suspects[0]

    return CrashRecord(
        worker=name.decode(errors="replace"),
        target_id=blamed.target_id,
        batch=batches.get(blamed.batch_number),
        batches=tuple(batches.values()),
        fault=fault,
        releases=_parse_releases(page),
        jobs=tuple(sorted(set(jobs))),
    )


def _parse_releases(page: bytes) -> dict[str, str]:
    """Parse whole lines only: half a version is another version."""
    text = page[_RELEASES_AT:_BATCHES_AT].decode(errors="replace")
    whole_lines = text.split("\n")[:-1]

    releases = {}
    for line in whole_lines:
        name, tab, release = line.partition("\t")
        if tab:
            releases[name] = release
    return releases


def _parse_batch(page: bytes, slot: int) -> RunningBatch | None:
    start = _BATCHES_AT + slot * _SLOT_SIZE
    end = start + _SLOT_SIZE
    data = page[start:end].rstrip(b"\0")

    words = _BATCH.fullmatch(data.decode(errors="replace"))
    if words is None:
        return None
    return RunningBatch(
        number=int(words[1]),
        token=words[2],
        attempt=int(words[3]),
        targets=int(words[4]),
        queue=words[5],
    )
