"""One spool file: rounds are appended at its end and taken from its beginning.

    16 bytes   magic, with the version of the format
     8 bytes   how far it has been written to its destination: an offset in this file
    then, for each round: length, CRC-32 and number of polls (4 bytes each), and the record
Everything is little-endian. Whoever holds a segment must see to it that nobody else uses it at the time.
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
from pathlib import Path
from typing import Any, Generic, TypeVar

from poller.workers.results.spool_codec import Codec

MAGIC = b"poller spool 2\n\0"
_HEAD = struct.Struct("<16sQ")
_DONE_AT = 16
_FRAME = struct.Struct("<III")
#: Polls of a file that are kept in memory, too: a store that was only slow for a moment gets them without another look.
AT_HAND = 4096

T = TypeVar("T")


class Damaged(Exception):
    """The file is not ours, or not as we wrote it."""


class Segment(Generic[T]):
    """`rounds` and `polls` say what is still to be written, `size` is in bytes."""

    def __init__(self, path: Path, codec: Codec[T], *, new: bool) -> None:
        """Raises OSError when it cannot be made or opened, Damaged when it is not ours."""
        self.path = path
        self.rounds = self.polls = 0
        self._codec = codec
        self._known: dict[
            str, Any
        ] = {}  # what its rounds told, as far as they were appended or read here
        self._ahead: deque[tuple[int, int, Sequence[T]]] = (
            deque()
        )  # not forgotten: where it ends, polls, items
        self._done = self._read = self.size = _HEAD.size
        self._file = _create(path) if new else _open(path)
        if not new:
            self._look_through()

    def append(self, items: Sequence[T]) -> None:
        """All of it, or nothing and an OSError; ValueError or TypeError for what no file can hold."""
        record, told = self._codec.pack(items, self._known)
        frame = _FRAME.pack(len(record), zlib.crc32(record), len(items)) + record
        try:
            _write(self._file, frame, self.size)
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._file, self.size)
            raise
        self._known.update(told)
        if self._read == self.size and sum(polls for _, polls, _ in self._ahead) < AT_HAND:
            self._read += len(frame)
            self._ahead.append((self._read, len(items), items))
        self.size += len(frame)
        self.rounds += 1
        self.polls += len(items)

    def oldest(self, polls: int) -> list[Sequence[T]]:
        """The oldest rounds, of so many polls together or a little more; they stay where they are. Raises Damaged."""
        found: list[Sequence[T]] = []
        for number in range(self.rounds):
            if polls <= 0:
                break
            if number == len(self._ahead):
                try:
                    self._read_on()
                except Damaged:
                    if found:  # these first
                        break
                    raise
            found.append(self._ahead[number][2])
            polls -= self._ahead[number][1]
        return found

    def forget(self, rounds: int) -> None:
        """So many of the oldest are written; who opens the file later begins behind them. Raises Damaged."""
        for _ in range(min(rounds, self.rounds)):
            if not self._ahead:
                self._read_on()
            self._done, polls, _items = self._ahead.popleft()
            self.rounds -= 1
            self.polls -= polls
        with suppress(OSError):  # they would be written twice, which changes nothing
            os.pwrite(self._file, struct.pack("<Q", self._done), _DONE_AT)

    @property
    def is_whole(self) -> bool:
        """False when there is something behind the last round: half a round, or rubbish."""
        return os.fstat(self._file).st_size <= self.size

    def close(self) -> None:
        os.close(self._file)

    def _read_on(self) -> None:
        """The next round that is not done; what the done ones told is learned on the way."""
        while True:
            begins, polls = self._read, 0
            try:
                length, checksum, polls = _FRAME.unpack(os.pread(self._file, _FRAME.size, begins))
                record = os.pread(self._file, length, begins + _FRAME.size)
                items = (
                    self._codec.unpack(record, self._known)
                    if zlib.crc32(record) == checksum
                    else None
                )
            except Exception as error:  # a file may contain anything
                raise Damaged(
                    f"the round at byte {begins} cannot be read: {type(error).__name__}"
                ) from error
            if items is None:
                raise Damaged(f"the round at byte {begins} was changed")
            self._read = begins + _FRAME.size + length
            if begins >= self._done:
                self._ahead.append((self._read, polls, items))
                return

    def _look_through(self) -> None:
        """How many rounds are left? Ends before half a round, as a killed worker may leave it."""
        end = os.fstat(self._file).st_size
        magic, self._done = (
            _HEAD.unpack(os.pread(self._file, _HEAD.size, 0)) if end >= _HEAD.size else (b"", 0)
        )
        if magic != MAGIC:
            self.close()
            raise Damaged("it is no spool file of this version")
        while self.size + _FRAME.size <= end:
            length, _, polls = _FRAME.unpack(os.pread(self._file, _FRAME.size, self.size))
            if self.size + _FRAME.size + length > end:
                return
            if self.size >= self._done:
                self.rounds += 1
                self.polls += polls
            self.size += _FRAME.size + length


def _write(file: int, data: bytes, offset: int) -> None:
    if os.pwrite(file, data, offset) != len(data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _create(path: Path) -> int:
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        _write(file, _HEAD.pack(MAGIC, _HEAD.size), 0)
    except OSError:
        os.close(file)
        path.unlink(missing_ok=True)
        raise
    return file


def _open(path: Path) -> int:
    """A plain file, and nothing that would make us wait or lead us elsewhere."""
    file = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise Damaged("it is no plain file")
    return file
