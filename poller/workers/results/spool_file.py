"""One spool file: rounds are appended at its end and removed from its start.

    16 bytes   magic, with the version of the format
     8 bytes   offset of the first round that is not written to the destination yet
    then, for each round: length, CRC-32 and number of polls (4 bytes each), and the record
All numbers are little-endian. Not safe for threads.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
import zlib
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from poller.workers.results.spool_codec import Codec

MAGIC = b"poller spool 2\n\0"
_HEAD = struct.Struct("<16sQ")
_START = struct.Struct("<Q")
_START_AT = 16
_FRAME = struct.Struct("<III")
#: Polls of a file that stay in memory: after a short outage they are written without reading the
#: file.
CACHED_POLLS = 4096

T = TypeVar("T")


class DamagedFile(Exception):
    """The file is no spool file, or its content has changed."""


@dataclass(frozen=True, slots=True)
class _CachedRound(Generic[T]):
    end: int  # offset of the next round
    polls: int
    items: Sequence[T]


class SpoolFile(Generic[T]):
    """`rounds` and `polls` count what is not written to the destination yet; `size` is in bytes."""

    def __init__(self, path: Path, codec: Codec[T], *, new: bool) -> None:
        """Create or open a file. Raises OSError, or DamagedFile when it is no spool file."""
        self.path = path
        self.rounds = 0
        self.polls = 0
        self.size = _HEAD.size
        self._codec = codec
        self._definitions: dict[str, Any] = {}  # of all rounds that were appended or read here
        self._cached: deque[_CachedRound[T]] = deque()  # the oldest rounds
        self._start = _HEAD.size  # offset of the first round
        self._cached_end = _HEAD.size  # offset behind the last cached round

        self._file = _create(path) if new else _open(path)
        if not new:
            self._scan()

    def append(self, items: Sequence[T]) -> None:
        """Append a round as a whole or not at all.

        Raises OSError; ValueError or TypeError for values that no file can hold.
        """
        packed = self._codec.pack(items, self._definitions)
        record = packed.record
        frame = _FRAME.pack(len(record), zlib.crc32(record), len(items)) + record
        try:
            _write(self._file, frame, self.size)
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._file, self.size)
            raise

        self._definitions.update(packed.definitions)
        end = self.size + len(frame)
        if self._cached_end == self.size and self._cached_polls() < CACHED_POLLS:
            self._cached_end = end
            self._cached.append(_CachedRound(end, len(items), items))
        self.size = end
        self.rounds += 1
        self.polls += len(items)

    def oldest(self, polls: int) -> list[Sequence[T]]:
        """Return the oldest rounds, of at least `polls` polls if there are that many.

        The rounds stay in the file. Raises DamagedFile.
        """
        rounds: list[Sequence[T]] = []
        for number in range(self.rounds):
            if polls <= 0:
                break
            is_cached = number < len(self._cached)
            if not is_cached:
                try:
                    self._cache_next()
                except DamagedFile:
                    if rounds:  # the sound rounds before the damage come first
                        break
                    raise

            cached = self._cached[number]
            rounds.append(cached.items)
            polls -= cached.polls
        return rounds

    def remove(self, rounds: int) -> None:
        """Remove the oldest rounds: they are written to the destination. Raises DamagedFile."""
        for _ in range(min(rounds, self.rounds)):
            if not self._cached:
                self._cache_next()
            removed = self._cached.popleft()
            self._start = removed.end
            self.rounds -= 1
            self.polls -= removed.polls

        with suppress(OSError):  # the rounds would be written twice, which changes nothing
            os.pwrite(self._file, _START.pack(self._start), _START_AT)

    @property
    def is_whole(self) -> bool:
        """False when there is data behind the last round: half a round, or foreign data."""
        file_size = os.fstat(self._file).st_size
        return file_size <= self.size

    def close(self) -> None:
        os.close(self._file)

    def _cached_polls(self) -> int:
        """Return the polls that are in memory, too."""
        return sum(cached.polls for cached in self._cached)

    def _cache_next(self) -> None:
        """Read the next round. Removed rounds before it are read for their definitions."""
        while True:
            offset = self._cached_end
            try:
                header = os.pread(self._file, _FRAME.size, offset)
                length, checksum, polls = _FRAME.unpack(header)
                record = os.pread(self._file, length, offset + _FRAME.size)
                is_sound = zlib.crc32(record) == checksum
                items = self._codec.unpack(record, self._definitions) if is_sound else []
            except Exception as error:  # door: a file may have any content
                text = f"the round at byte {offset} cannot be read: {type(error).__name__}"
                raise DamagedFile(text) from error
            if not is_sound:
                raise DamagedFile(f"the round at byte {offset} was changed")

            self._cached_end = offset + _FRAME.size + length
            if offset >= self._start:
                self._cached.append(_CachedRound(self._cached_end, polls, items))
                return

    def _scan(self) -> None:
        """Count the rounds of an existing file, without half a round at its end."""
        end = os.fstat(self._file).st_size
        magic = b""
        if end >= _HEAD.size:
            magic, self._start = _HEAD.unpack(os.pread(self._file, _HEAD.size, 0))
        if magic != MAGIC:
            self.close()
            raise DamagedFile("it is no spool file of this version")

        while self.size + _FRAME.size <= end:
            header = os.pread(self._file, _FRAME.size, self.size)
            length, _, polls = _FRAME.unpack(header)
            next_offset = self.size + _FRAME.size + length
            if next_offset > end:
                return

            if self.size >= self._start:
                self.rounds += 1
                self.polls += polls
            self.size = next_offset


def _write(file: int, data: bytes, offset: int) -> None:
    """Write all data. Raises OSError, also when the disk takes only a part."""
    written = os.pwrite(file, data, offset)
    if written != len(data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _create(path: Path) -> int:
    """Create a file with its head. Raises OSError, and leaves no file then."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    head = _HEAD.pack(MAGIC, _HEAD.size)
    try:
        _write(file, head, 0)
    except OSError:
        os.close(file)
        path.unlink(missing_ok=True)
        raise
    return file


def _open(path: Path) -> int:
    """Open a plain file; no pipe, which would block, and no link."""
    file = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(file).st_mode
    if not stat.S_ISREG(mode):
        os.close(file)
        raise DamagedFile("it is no plain file")
    return file
