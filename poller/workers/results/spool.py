"""What waits for one destination: rounds on disk, oldest first, within a bound and never silently beyond it.

Not safe for threads: whoever calls holds its writer's lock. Nothing here raises for what the disk does.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from poller.observability import logs
from poller.workers.results.spool_codec import Codec
from poller.workers.results.spool_file import Damaged, Segment

log = logs.get(__name__)

#: Polls that wait in memory while the disk takes nothing.
MEMORY_POLLS = 4096
#: Refused rounds that are kept for a person to look at.
KEPT_REFUSED = 16
#: The bound is kept by dropping whole files, so each is a small part of it.
PARTS = 16
SMALLEST, LARGEST = 64 * 1024, 64 * 1024 * 1024
SAY_EVERY_S = 5.0

T = TypeVar("T")


class Room:
    """What all spools of a process may take on disk together. The largest one makes room."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.part_bytes = min(max(limit_bytes // PARTS, SMALLEST), LARGEST)
        self.spools: list[Spool[Any]] = []

    def is_exceeded_by(self, spool: Spool[Any]) -> bool:
        # The others change meanwhile; at worst one of them makes room a moment later.
        sizes = [other.size for other in self.spools]
        return sum(sizes) > self.limit_bytes and spool.size == max(sizes)


@dataclass(frozen=True, slots=True)
class Taken(Generic[T]):
    """The oldest rounds of a spool; they stay there until they are forgotten."""

    rounds: Sequence[Sequence[T]]
    segment: Segment[T] | None  # None: they are only in memory


class Spool(Generic[T]):
    """`place` gives the directory, and raises OSError while there is none."""

    def __init__(self, name: str, codec: Codec[T], place: Callable[[], Path], room: Room) -> None:
        self.name = name
        self.dropped = 0  # polls, since the start
        self._codec = codec
        self._place = place
        self._room = room
        self._segments: deque[Segment[T]] = deque()
        self._growing: Segment[T] | None = None
        self._unwritten: deque[Sequence[T]] = (
            deque()
        )  # the disk did not take them; newer than all that is on it
        self._disk_error = ""
        self._said, self._said_at = 0, 0.0
        room.spools.append(self)

    def __bool__(self) -> bool:
        return bool(self._segments or self._unwritten)

    @property
    def polls(self) -> int:
        """That wait. This and `size` may be asked for without the lock."""
        return sum(segment.polls for segment in tuple(self._segments)) + sum(
            map(len, tuple(self._unwritten))
        )

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return sum(segment.size for segment in tuple(self._segments))

    def open(self) -> None:
        """Take up what is in the directory: a predecessor's rounds, and inherited ones."""
        try:
            paths = sorted(self._place().glob("*.rounds"))
        except OSError as error:
            log.error("spool_unusable", store=self.name, error=str(error))
            return
        for path in paths:
            self._take_up(path)
        if self:
            log.info("spool_taken_up", store=self.name, polls=self.polls)

    def append(self, items: Sequence[T]) -> None:
        """When this returns it is on disk; if that takes nothing, in memory; and what is too much was dropped."""
        self._unwritten.append(items)
        self._write_out()
        while self._room.is_exceeded_by(self):
            self._drop_oldest_file()
        while sum(map(len, self._unwritten)) > MEMORY_POLLS:
            self.dropped += len(self._unwritten.popleft())
        self.say_what_was_dropped()

    def oldest(self, polls: int) -> Taken[T]:
        """The oldest rounds, of about so many polls; none when nothing waits any more."""
        while self._segments:
            segment = self._segments[0]
            try:
                if rounds := segment.oldest(polls):
                    return Taken(rounds, segment)
                self._retire_oldest_file()
            except Damaged as error:
                self._set_oldest_file_aside(error)
        return Taken([self._unwritten[0]] if self._unwritten else [], None)

    def forget(self, taken: Taken[T]) -> None:
        """They are written. What was dropped or set aside meanwhile is not there to be forgotten."""
        segment = taken.segment
        if segment is None:
            if self._unwritten and taken.rounds and self._unwritten[0] is taken.rounds[0]:
                self._unwritten.popleft()
        elif self._segments and self._segments[0] is segment:
            try:
                segment.forget(len(taken.rounds))
            except Damaged as error:
                self._set_oldest_file_aside(error)
            else:
                if not segment.rounds:
                    self._retire_oldest_file()

    def refuse(self, taken: Taken[T], reason: str) -> None:
        """The destination will never take it: keep it apart, for a person, and go on without it."""
        for items in taken.rounds:
            kept = self._keep(items)
            log.error(
                "round_refused",
                store=self.name,
                polls=len(items),
                reason=reason,
                kept=str(kept or "no"),
            )
            self.dropped += len(items)
            self._said += len(items)
        self.forget(taken)

    def say_what_was_dropped(self, *, at_once: bool = False) -> None:
        """At most every few seconds."""
        now = time.monotonic()
        if self.dropped > self._said and (at_once or now >= self._said_at + SAY_EVERY_S):
            facts = {
                "polls": self.dropped - self._said,
                "in_all": self.dropped,
                "disk": self._disk_error or "full",
            }
            log.error("polls_dropped", store=self.name, **facts)
            self._said, self._said_at = self.dropped, now

    def close(self) -> None:
        """What is on disk stays for the next worker; what is not is lost."""
        self._write_out()
        self.dropped += sum(map(len, self._unwritten))
        self._unwritten.clear()
        self.say_what_was_dropped(at_once=True)
        if self:
            log.warning("spool_left", store=self.name, polls=self.polls)
        while self._segments:
            self._segments.popleft().close()

    def _take_up(self, path: Path) -> None:
        try:
            self._segments.append(Segment(path, self._codec, new=False))
        except Damaged as error:
            self._rename(path, str(error))
        except OSError as error:
            log.error("spool_file_unusable", store=self.name, file=str(path), error=str(error))

    def _write_out(self) -> None:
        while self._unwritten:
            try:
                self._last_file().append(self._unwritten[0])
            except OSError as error:
                self._note_disk(str(error))
                return
            except (TypeError, ValueError) as error:
                log.error(
                    "round_unwritable", store=self.name, error=f"{type(error).__name__}: {error}"
                )
                self.dropped += len(self._unwritten[0])
            self._unwritten.popleft()
        self._note_disk("")

    def _note_disk(self, error: str) -> None:
        """Each trouble is told once."""
        if error and error != self._disk_error:
            log.error(
                "spool_unusable", store=self.name, error=error, in_memory_at_most=MEMORY_POLLS
            )
        self._disk_error = error

    def _last_file(self) -> Segment[T]:
        """The one to append to."""
        last = self._segments[-1] if self._segments else None
        if last is None or last is not self._growing or last.size >= self._room.part_bytes:
            path = self._place() / f"{time.time_ns():020d}.rounds"
            last = self._growing = Segment(path, self._codec, new=True)
            self._segments.append(last)
        return last

    def _retire_oldest_file(self) -> None:
        """It is done. Something behind its last round is not ours to throw away."""
        segment = self._segments.popleft()
        if segment.is_whole:
            _unlink(segment.path)
        else:
            self._rename(segment.path, "there is something behind its last round")
        segment.close()

    def _set_oldest_file_aside(self, error: Damaged) -> None:
        segment = self._segments.popleft()
        segment.close()
        self._rename(segment.path, str(error))
        self.dropped += segment.polls

    def _drop_oldest_file(self) -> None:
        segment = self._segments.popleft()
        segment.close()
        _unlink(segment.path)
        self.dropped += segment.polls

    def _rename(self, path: Path, reason: str) -> None:
        """Out of the way, for a person to look at."""
        aside = path.with_suffix(".damaged")
        with suppress(OSError):
            path.rename(aside)
        log.error("spool_file_damaged", store=self.name, file=str(aside), reason=reason)

    def _keep(self, items: Sequence[T]) -> Path | None:
        """A file of its own for one round."""
        try:
            place = self._place()
            if len(list(place.glob("*.refused"))) >= KEPT_REFUSED:
                return None
            kept = Segment(place / f"{time.time_ns():020d}.refused", self._codec, new=True)
            kept.append(items)
        except (OSError, TypeError, ValueError):
            return None
        kept.close()
        return kept.path


def _unlink(path: Path) -> None:
    with suppress(OSError):
        path.unlink()
