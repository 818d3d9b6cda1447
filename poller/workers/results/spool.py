"""The spool of one destination: rounds that wait on disk, oldest first, within a limit.

Not safe for threads: the writer of the destination holds its lock. No method raises for an error
of the disk.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from poller.domain.record.sink_report import DropReason
from poller.observability import logs
from poller.workers.results.spool_codec import Codec
from poller.workers.results.spool_file import DamagedFile, SpoolFile
from poller.workers.results.spool_quota import SpoolQuota

log = logs.get(__name__)

#: Polls that wait in memory while the disk takes none.
MEMORY_POLLS = 4096
#: Refused rounds that are stored for a person.
MAX_REFUSED_FILES = 16
LOG_INTERVAL_S = 5.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SpooledRounds(Generic[T]):
    """The oldest rounds of a spool. They stay there until they are removed."""

    rounds: Sequence[Sequence[T]]
    file: SpoolFile[T] | None  # None: they are only in memory


class Spool(Generic[T]):
    """`find_directory` returns the directory of the files, or raises OSError."""

    def __init__(
        self,
        name: str,
        codec: Codec[T],
        find_directory: Callable[[], Path],
        quota: SpoolQuota,
        is_sink: bool = False,
    ) -> None:
        self.name = name
        self.is_sink = is_sink
        self.dropped_by_reason: Counter[str] = Counter()  # polls, since the start
        self._codec = codec
        self._find_directory = find_directory
        self._quota = quota
        self._files: deque[SpoolFile[T]] = deque()
        self._growing: SpoolFile[T] | None = None
        self._in_memory: deque[Sequence[T]] = deque()  # newer than all rounds on disk
        self._disk_error = ""
        self._logged_dropped = 0
        self._logged_mono = 0.0
        quota.spools.append(self)

    @property
    def dropped(self) -> int:
        """Polls that were dropped since the start."""
        return sum(tuple(self.dropped_by_reason.values()))

    def __bool__(self) -> bool:
        """Whether any round waits."""
        return bool(self._files or self._in_memory)

    @property
    def polls(self) -> int:
        """The polls that wait. This property and `size` need no lock."""
        on_disk = sum(file.polls for file in tuple(self._files))
        return on_disk + self._polls_in_memory()

    def _polls_in_memory(self) -> int:
        return sum(len(items) for items in tuple(self._in_memory))

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return sum(file.size for file in tuple(self._files))

    def open(self) -> None:
        """Open the files in the directory: those of the last process, and adopted ones."""
        try:
            paths = sorted(self._find_directory().glob("*.rounds"))
        except OSError as error:
            log.error("spool_unusable", store=self.name, error=str(error))
            return

        for path in paths:
            self._open_file(path)
        if self:
            log.info("spool_taken_up", store=self.name, polls=self.polls)

    def append(self, items: Sequence[T]) -> None:
        """Store a round on disk, or in memory while the disk fails; drop the oldest ones."""
        self._in_memory.append(items)
        self._flush()

        while self._polls_in_memory() > MEMORY_POLLS:
            oldest = self._in_memory.popleft()
            self._count_dropped(DropReason.DISK, len(oldest))
        self.drop_excess()

    def drop_excess(self) -> None:
        """Drop the oldest files while the disk space is used up, as far as it is this spool's."""
        while self._files and self._quota.is_exceeded_by(self):
            self._drop_oldest_file()
        self.log_dropped()

    def oldest(self, polls: int) -> SpooledRounds[T]:
        """Return the oldest rounds, of about `polls` polls; none when the spool is empty."""
        while self._files:
            file = self._files[0]
            try:
                rounds = file.oldest(polls)
            except DamagedFile as error:
                self._set_oldest_file_aside(error)
                continue
            if rounds:
                return SpooledRounds(rounds, file)
            self._retire_oldest_file()
        rounds_in_memory = [self._in_memory[0]] if self._in_memory else []
        return SpooledRounds(rounds_in_memory, None)

    def remove(self, taken: SpooledRounds[T]) -> None:
        """Remove rounds that are written, unless they were dropped or set aside meanwhile."""
        if taken.file is None:
            if self._in_memory and taken.rounds and self._in_memory[0] is taken.rounds[0]:
                self._in_memory.popleft()
            return

        if not self._files or self._files[0] is not taken.file:
            return
        try:
            taken.file.remove(len(taken.rounds))
        except DamagedFile as error:
            self._set_oldest_file_aside(error)
            return
        if not taken.file.rounds:
            self._retire_oldest_file()

    def refuse(self, taken: SpooledRounds[T], reason: str) -> None:
        """Set rounds aside for a person: the destination will never take them."""
        for items in taken.rounds:
            path = self._store_refused(items)
            log.error(
                "round_refused",
                store=self.name,
                polls=len(items),
                reason=reason,
                kept=str(path or "no"),
            )
            self._count_dropped(DropReason.REFUSED, len(items))
            self._logged_dropped += len(items)
        self.remove(taken)

    def log_dropped(self, *, at_once: bool = False) -> None:
        """Log the polls that were dropped since the last line, at most every few seconds."""
        now_mono = time.monotonic()
        is_due = at_once or now_mono >= self._logged_mono + LOG_INTERVAL_S
        if self.dropped > self._logged_dropped and is_due:
            log.error(
                "polls_dropped",
                store=self.name,
                polls=self.dropped - self._logged_dropped,
                in_all=self.dropped,
                disk=self._disk_error or "full",
            )
            self._logged_dropped = self.dropped
            self._logged_mono = now_mono

    def close(self) -> None:
        """Close the files; they stay for the next worker.

        Rounds that are only in memory are dropped.
        """
        self._flush()
        if self._in_memory:
            self._count_dropped(DropReason.DISK, self._polls_in_memory())
        self._in_memory.clear()
        self.log_dropped(at_once=True)
        if self:
            log.warning("spool_left", store=self.name, polls=self.polls)
        while self._files:
            self._files.popleft().close()

    def _open_file(self, path: Path) -> None:
        try:
            self._files.append(SpoolFile(path, self._codec, new=False))
        except DamagedFile as error:
            self._rename_damaged(path, str(error))
        except OSError as error:
            log.error("spool_file_unusable", store=self.name, file=str(path), error=str(error))

    def _flush(self) -> None:
        """Write the rounds in memory to disk, until the disk fails."""
        while self._in_memory:
            items = self._in_memory[0]
            try:
                self._file_to_append().append(items)
            except OSError as error:
                self._set_disk_error(str(error))
                return
            except (TypeError, ValueError) as error:
                text = f"{type(error).__name__}: {error}"
                log.error("round_unwritable", store=self.name, error=text)
                self._count_dropped(DropReason.INVALID, len(items))
            self._in_memory.popleft()
        self._set_disk_error("")

    def _set_disk_error(self, error: str) -> None:
        """Remember the state of the disk, and log each new error once."""
        if error and error != self._disk_error:
            log.error(
                "spool_unusable", store=self.name, error=error, in_memory_at_most=MEMORY_POLLS
            )
        self._disk_error = error

    def _file_to_append(self) -> SpoolFile[T]:
        """Return the last file, or a new one if the last is full or not of this process."""
        growing = self._growing
        is_last = bool(self._files) and self._files[-1] is growing
        if growing is not None and is_last and growing.size < self._quota.file_bytes:
            return growing

        path = self._find_directory() / f"{time.time_ns():020d}.rounds"
        file = SpoolFile(path, self._codec, new=True)
        self._growing = file
        self._files.append(file)
        return file

    def _retire_oldest_file(self) -> None:
        """Delete a file whose rounds are all written. With foreign data at its end it stays."""
        file = self._files.popleft()
        if file.is_whole:
            _unlink(file.path)
        else:
            self._rename_damaged(file.path, "there is something behind its last round")
        file.close()

    def _set_oldest_file_aside(self, error: DamagedFile) -> None:
        file = self._files.popleft()
        file.close()
        self._rename_damaged(file.path, str(error))
        self._count_dropped(DropReason.DAMAGED, file.polls)

    def _drop_oldest_file(self) -> None:
        file = self._files.popleft()
        file.close()
        _unlink(file.path)
        self._count_dropped(DropReason.FULL, file.polls)

    def _count_dropped(self, reason: DropReason, polls: int) -> None:
        self.dropped_by_reason[reason.value] += polls

    def _rename_damaged(self, path: Path, reason: str) -> None:
        """Rename a damaged file, so that it stays for a person and is not opened again."""
        renamed = path.with_suffix(".damaged")
        with suppress(OSError):
            path.rename(renamed)
        log.error("spool_file_damaged", store=self.name, file=str(renamed), reason=reason)

    def _store_refused(self, items: Sequence[T]) -> Path | None:
        """Store one round in a file of its own. None: the disk fails, or there are enough."""
        try:
            directory = self._find_directory()
            if len(list(directory.glob("*.refused"))) >= MAX_REFUSED_FILES:
                return None
            path = directory / f"{time.time_ns():020d}.refused"
            file = SpoolFile(path, self._codec, new=True)
            file.append(items)
        except (OSError, TypeError, ValueError):
            return None
        file.close()
        return path


def _unlink(path: Path) -> None:
    with suppress(OSError):
        path.unlink()
