"""The spool keeps order, bounds and counts, whatever happens to its files."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from structlog.testing import capture_logs

from poller.domain.failures.outcome import Result
from poller.domain.inventory.poll_target import PollTarget
from poller.domain.metrics.reading import Reading, ReadingSet
from poller.domain.record.run import Run
from poller.sinks.api import Sample
from poller.workers.results import spool, spool_codec, spool_file
from poller.workers.results.spool import Room, Spool
from tests.unit.workers.results.spools import MIB, numbers, opened, round_of, written_out


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "ledger"


def test_rounds_come_out_as_they_went_in(place: Path) -> None:
    """Oldest first, and still there until they are forgotten."""
    waiting = opened(place)
    for number in range(10):
        waiting.append(round_of(number))
    assert numbers(waiting.oldest(3)) == [0, 1, 2]
    assert numbers(waiting.oldest(3)) == [0, 1, 2]
    waiting.forget(waiting.oldest(3))
    assert numbers(waiting.oldest(100)) == list(range(3, 10))
    assert (waiting.polls, waiting.dropped) == (7, 0)


def test_what_was_just_set_down_is_given_back_without_reading_it(place: Path) -> None:
    """A store that is only slow for a moment must not cost the worker its time: reading a shape takes long."""
    waiting = opened(place)
    first = round_of(1)
    waiting.append(first)
    assert waiting.oldest(1).rounds[0] is first


def test_beyond_what_is_at_hand_rounds_are_read_from_the_file(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In order, and those that are appended after a read, too."""
    monkeypatch.setattr(spool_file, "AT_HAND", 3)
    waiting = opened(place)
    rounds_in = [round_of(number) for number in range(8)]
    for one in rounds_in[:6]:
        waiting.append(one)
    taken = waiting.oldest(100)
    assert numbers(taken) == list(range(6))
    assert [one is there for one, there in zip(rounds_in[:6], taken.rounds, strict=True)] == [
        True
    ] * 3 + [False] * 3
    waiting.forget(waiting.oldest(5))
    for one in rounds_in[6:]:
        waiting.append(one)
    assert written_out(waiting) == [5, 6, 7]


def test_nothing_is_left_of_what_was_written(place: Path) -> None:
    """Neither rounds nor files."""
    waiting = opened(place)
    for number in range(3):
        waiting.append(round_of(number))
    assert written_out(waiting) == [0, 1, 2]
    assert not waiting
    assert list(place.glob("*.*")) == []


def test_only_its_owner_may_read_it(place: Path) -> None:
    """Addresses and messages of devices are nobody else's business."""
    opened(place).append(round_of(1))
    modes = {stat.S_IMODE(path.stat().st_mode) for path in [place, *place.iterdir()]}
    assert modes == {0o700, 0o600}


def test_who_comes_later_goes_on_where_the_last_one_was(place: Path) -> None:
    """Killed at any time: what was forgotten is not there, all else is."""
    first = opened(place)
    for number in range(10):
        first.append(round_of(number))
    first.forget(first.oldest(4))
    second = opened(place)
    assert second.polls == 6
    second.append(round_of(10))
    assert written_out(second) == [4, 5, 6, 7, 8, 9, 10]


def test_beyond_the_bound_the_oldest_go_and_are_counted(place: Path) -> None:
    """The disk never holds more than it may, and every poll is accounted for."""
    waiting = opened(place, Room(MIB))
    for number in range(3000):
        waiting.append(round_of(number, message=os.urandom(400).hex()))
        assert sum(path.stat().st_size for path in place.iterdir()) <= MIB
    left = written_out(waiting)
    assert left == list(range(3000 - len(left), 3000))
    assert len(left) > 1000
    assert waiting.dropped == 3000 - len(left)


def test_the_largest_spool_makes_room(tmp_path: Path) -> None:
    """A sink with much to say does not cost the ledger its rows."""
    room = Room(MIB)
    small, large = opened(tmp_path / "ledger", room), opened(tmp_path / "sink", room)
    for number in range(3000):
        large.append(round_of(number, message=os.urandom(400).hex()))
        if number % 10 == 0:
            small.append(round_of(number))
    assert (small.polls, small.dropped) == (300, 0)
    assert large.dropped > 0
    assert large.polls + large.dropped == 3000


def test_dropping_is_told_with_numbers_and_not_for_every_round(place: Path) -> None:
    """An operator reads how many, not the same line a thousand times."""
    with capture_logs() as said:
        waiting = opened(place, Room(MIB))
        for number in range(5000):
            waiting.append(round_of(number, message=os.urandom(400).hex()))
        waiting.close()
    lines = [line for line in said if line["event"] == "polls_dropped"]
    assert len(lines) <= 3
    assert lines[-1]["in_all"] == waiting.dropped == sum(line["polls"] for line in lines) > 0


def test_a_disk_that_takes_nothing_leaves_the_memory() -> None:
    """Bounded, the newest are kept, and the reason is told once."""

    def nowhere() -> Path:
        raise OSError(errno.EROFS, "Read-only file system")

    with capture_logs() as said:
        waiting: Spool[Run] = Spool("ledger", spool_codec.Runs(), nowhere, Room(MIB))
        for number in range(spool.MEMORY_POLLS + 100):
            waiting.append(round_of(number))
    assert waiting.polls == spool.MEMORY_POLLS
    assert waiting.dropped == 100
    assert written_out(waiting) == list(range(100, spool.MEMORY_POLLS + 100))
    assert ["Read-only" in line["error"] for line in said if line["event"] == "spool_unusable"] == [
        True
    ]


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> Callable[[], AbstractContextManager[None]]:
    """A disk on which small things find room, and of a round only half."""
    real = os.pwrite

    def half(file: int, data: bytes, offset: int) -> int:
        return real(file, data if len(data) <= 24 else data[: len(data) // 2], offset)

    @contextmanager
    def full() -> Iterator[None]:
        with monkeypatch.context() as patched:
            patched.setattr(spool_file.os, "pwrite", half)
            yield

    return full


def test_a_disk_that_is_full_for_a_while_loses_nothing(
    place: Path, full_disk: Callable[[], AbstractContextManager[None]]
) -> None:
    """What waits in memory is written, in order, when there is room again."""
    waiting = opened(place)
    waiting.append(round_of(0))
    with full_disk():
        waiting.append(round_of(1))
        waiting.append(round_of(2))
    assert waiting.polls == 3
    waiting.append(round_of(3))
    assert written_out(opened(place)) == [0, 1, 2, 3]
    assert waiting.dropped == 0


def test_half_a_round_is_taken_back(
    place: Path, full_disk: Callable[[], AbstractContextManager[None]]
) -> None:
    """A worker that is killed on a full disk leaves a file without rubbish."""
    waiting = opened(place)
    waiting.append(round_of(0))
    with full_disk():
        waiting.append(round_of(1))
    assert written_out(opened(place)) == [0]
    assert list(place.glob("*.damaged")) == []


def test_what_a_full_disk_did_not_take_is_written_from_memory(
    place: Path, full_disk: Callable[[], AbstractContextManager[None]]
) -> None:
    """The file that was begun for it has no round, and is in nobody's way."""
    waiting = opened(place)
    with full_disk():
        waiting.append(round_of(0))
        waiting.append(round_of(1))
        assert written_out(waiting) == [0, 1]
    assert not waiting
    assert list(place.glob("*.*")) == []


def filled(place: Path, files: int = 3) -> list[Path]:
    """So many files of ten rounds each."""
    place.mkdir()
    for number in range(files):
        one: Spool[Run] = Spool("ledger", spool_codec.Runs(), lambda: place, Room(MIB))
        for each in range(10):
            one.append(round_of(number * 10 + each))
    return sorted(place.glob("*.rounds"))


def test_a_damaged_file_costs_its_own_rest_only(place: Path) -> None:
    """What precedes the damage and every other file is written; the file is kept apart and named."""
    _, second, _ = filled(place)
    content = bytearray(second.read_bytes())
    content[len(content) * 3 // 4] ^= 0xFF
    second.write_bytes(content)
    with capture_logs() as said:
        waiting = opened(place)
        left = written_out(waiting)
    assert left[:10] == list(range(10))
    assert left[-10:] == list(range(20, 30))
    assert 10 in left
    assert len(left) + waiting.dropped == 30
    assert [path.name for path in place.glob("*.*")] == [second.with_suffix(".damaged").name]
    assert [
        second.stem in line["file"] for line in said if line["event"] == "spool_file_damaged"
    ] == [True]


def test_a_changed_value_is_not_taken_for_a_reading(tmp_path: Path) -> None:
    """One bit of one number is enough: better no reading than a wrong one."""
    target = PollTarget(7, 1, "t", 3, "d", "127.0.0.1", "", "fake", 60_000, 5_000)
    readings = ReadingSet.of(Reading("m", float(n), {"n": str(n)}) for n in range(100))
    waiting: Spool[Sample] = Spool("sink-sql", spool_codec.Samples(), lambda: tmp_path, Room(MIB))
    waiting.append([Sample(target, 1, readings)])
    [path] = tmp_path.glob("*.rounds")
    content = bytearray(path.read_bytes())
    content[-20] ^= 0x01
    path.write_bytes(content)
    heir: Spool[Sample] = Spool("sink-sql", spool_codec.Samples(), lambda: tmp_path, Room(MIB))
    heir.open()
    assert heir.oldest(10).rounds == []
    assert heir.dropped == 1


def test_half_a_round_at_the_end_is_kept_apart(place: Path) -> None:
    """A worker was killed while it wrote; that poll was not finished either."""
    _, second, _ = filled(place)
    content = second.read_bytes()
    second.write_bytes(content[:-5])
    assert written_out(opened(place)) == [*range(19), *range(20, 30)]
    assert second.with_suffix(".damaged").read_bytes()[24:] == content[24:-5]


def test_foreign_things_harm_nobody(place: Path) -> None:
    """Text, emptiness, a pickle, a pipe, a link and a directory, all with our suffix."""
    filled(place)
    (place / "0.rounds").write_text("hello " * 100)
    (place / "1.rounds").write_bytes(b"")
    (place / "2.rounds").write_bytes(b"\x80\x04\x95" + bytes(50))
    os.mkfifo(place / "3.rounds")
    (place / "4.rounds").symlink_to("/etc/hostname")
    (place / "5.rounds").mkdir()
    (place / "notes.txt").write_text("mine")
    assert written_out(opened(place)) == list(range(30))
    assert (place / "0.damaged").read_text().startswith("hello")
    assert (place / "notes.txt").read_text() == "mine"


def test_a_round_of_another_destination_is_no_round_of_ours(tmp_path: Path) -> None:
    """A file that was moved to the wrong place is set aside, not written as something else."""
    [path] = filled(tmp_path / "ledger", files=1)
    (tmp_path / "sink").mkdir()
    path.rename(tmp_path / "sink" / path.name)
    place = tmp_path / "sink"
    waiting = Spool("sink-sql", spool_codec.Samples(), lambda: place, Room(MIB))
    waiting.open()
    assert waiting.oldest(10).rounds == []
    assert [one.suffix for one in place.iterdir()] == [".damaged"]


def test_a_refused_round_is_kept_for_a_person(place: Path) -> None:
    """Renamed, it is taken up again; a store that refuses everything does not fill the disk."""
    waiting = opened(place)
    for number in range(spool.KEPT_REFUSED + 3):
        waiting.append(round_of(number))
    for _ in range(spool.KEPT_REFUSED + 2):
        waiting.refuse(waiting.oldest(1), "no")
    assert written_out(waiting) == [spool.KEPT_REFUSED + 2]
    assert waiting.dropped == spool.KEPT_REFUSED + 2
    kept = sorted(place.glob("*.refused"))
    assert len(kept) == spool.KEPT_REFUSED
    kept[0].rename(kept[0].with_suffix(".rounds"))
    assert written_out(opened(place)) == [0]


def test_what_no_file_can_hold_is_told_and_does_not_stop_the_others(place: Path) -> None:
    """A value that is no JSON, from a plugin."""
    waiting = opened(place)
    waiting.append(round_of(1))
    waiting.append([Run(2, 0, Result.OK, message=b"\x00")])  # type: ignore[arg-type]
    waiting.append(round_of(3))
    assert written_out(waiting) == [1, 3]
    assert waiting.dropped == 1


class Restarts(RuleBasedStateMachine):
    """Against a plain list: any order of appending, writing, forgetting, and being killed."""

    def __init__(self) -> None:
        super().__init__()
        self.place = Path(tempfile.mkdtemp()) / "ledger"
        self.spool = opened(self.place, Room(64 * MIB))
        self.model: list[int] = []
        self.next = 0

    @rule(many=st.integers(1, 30))
    def append(self, many: int) -> None:
        for _ in range(many):
            self.spool.append(round_of(self.next))
            self.model.append(self.next)
            self.next += 1

    @rule(polls=st.integers(1, 40))
    def write_some(self, polls: int) -> None:
        taken = self.spool.oldest(polls)
        found = numbers(taken)
        assert found == self.model[: len(found)]
        assert found or not self.model
        self.spool.forget(taken)
        del self.model[: len(found)]

    @rule(polls=st.integers(1, 40))
    def look_only(self, polls: int) -> None:
        found = numbers(self.spool.oldest(polls))
        assert found == self.model[: len(found)]

    @rule()
    def be_killed_and_started(self) -> None:
        self.spool = opened(self.place, Room(64 * MIB))

    @invariant()
    def counts(self) -> None:
        assert self.spool.polls == len(self.model)
        assert bool(self.spool) == bool(self.model)

    def teardown(self) -> None:
        shutil.rmtree(self.place.parent)


TestRestarts = Restarts.TestCase
TestRestarts.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
