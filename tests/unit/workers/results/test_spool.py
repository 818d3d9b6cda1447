"""The spool keeps order, limits and counts through restarts, full disks and damaged files."""

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
from poller.workers.results import spool, spool_file
from poller.workers.results.spool import Spool
from poller.workers.results.spool_codec import RunCodec, SampleCodec
from poller.workers.results.spool_quota import SpoolQuota
from tests.unit.workers.results.spools import MIB, numbers, open_spool, round_of, write_all


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "ledger"


def test_rounds_come_out_in_order(directory: Path) -> None:
    """Rounds stay in the spool until they are removed."""
    waiting = open_spool(directory)
    for number in range(10):
        waiting.append(round_of(number))
    assert numbers(waiting.oldest(3)) == [0, 1, 2]
    assert numbers(waiting.oldest(3)) == [0, 1, 2]
    waiting.remove(waiting.oldest(3))
    assert numbers(waiting.oldest(100)) == list(range(3, 10))
    assert (waiting.polls, waiting.dropped) == (7, 0)


def test_a_new_round_is_returned_without_reading_the_file(directory: Path) -> None:
    """A short outage must not cost CPU time: unpacking a shape is slow."""
    waiting = open_spool(directory)
    first = round_of(1)
    waiting.append(first)
    assert waiting.oldest(1).rounds[0] is first


def test_rounds_beyond_the_cache_are_read_from_the_file(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rounds that are appended after a read come in order, too."""
    monkeypatch.setattr(spool_file, "CACHED_POLLS", 3)
    waiting = open_spool(directory)
    rounds_in = [round_of(number) for number in range(8)]
    for one in rounds_in[:6]:
        waiting.append(one)
    taken = waiting.oldest(100)
    assert numbers(taken) == list(range(6))
    is_same = [own is read for own, read in zip(rounds_in[:6], taken.rounds, strict=True)]
    assert is_same == [True] * 3 + [False] * 3
    waiting.remove(waiting.oldest(5))
    for one in rounds_in[6:]:
        waiting.append(one)
    assert write_all(waiting) == [5, 6, 7]


def test_removed_rounds_leave_no_file(directory: Path) -> None:
    """A file is deleted with its last round."""
    waiting = open_spool(directory)
    for number in range(3):
        waiting.append(round_of(number))
    assert write_all(waiting) == [0, 1, 2]
    assert not waiting
    assert list(directory.glob("*.*")) == []


def test_only_the_owner_may_read_the_files(directory: Path) -> None:
    """They hold addresses and messages of devices."""
    open_spool(directory).append(round_of(1))
    modes = {stat.S_IMODE(path.stat().st_mode) for path in [directory, *directory.iterdir()]}
    assert modes == {0o700, 0o600}


def test_a_restarted_worker_continues_after_the_last_removed_round(directory: Path) -> None:
    """The first worker is killed; its removed rounds are gone, all others are there."""
    first = open_spool(directory)
    for number in range(10):
        first.append(round_of(number))
    first.remove(first.oldest(4))
    second = open_spool(directory)
    assert second.polls == 6
    second.append(round_of(10))
    assert write_all(second) == [4, 5, 6, 7, 8, 9, 10]


def test_beyond_the_quota_the_oldest_rounds_are_dropped_and_counted(directory: Path) -> None:
    """The files never exceed the quota, and every poll is either written or counted."""
    waiting = open_spool(directory, SpoolQuota(MIB))
    for number in range(3000):
        waiting.append(round_of(number, message=os.urandom(400).hex()))
        assert sum(path.stat().st_size for path in directory.iterdir()) <= MIB
    left = write_all(waiting)
    assert left == list(range(3000 - len(left), 3000))
    assert len(left) > 1000
    assert waiting.dropped == 3000 - len(left)


def append_polls(spool: Spool[Run], polls: int) -> None:
    for number in range(polls):
        spool.append(round_of(number, message=os.urandom(400).hex()))


def test_a_dead_sink_leaves_half_of_the_quota_to_the_ledger(tmp_path: Path) -> None:
    """The ledger is never the one to drop rows while it uses less than that."""
    quota = SpoolQuota(MIB)
    ledger = open_spool(tmp_path / "ledger", quota)
    sink = open_spool(tmp_path / "sink", quota, is_sink=True)
    append_polls(sink, 3000)
    assert sink.size > 0.8 * MIB
    for _ in range(20):
        append_polls(ledger, 25)
        sink.drop_excess()  # as its writer does at every attempt
    assert (ledger.polls, ledger.dropped) == (500, 0)
    assert quota.limit_bytes >= ledger.size + sink.size
    assert sink.dropped_by_reason == {"full": 3000 - sink.polls}


def test_dead_sinks_share_what_is_left(tmp_path: Path) -> None:
    """A sink with many readings does not cost another one its rows."""
    quota = SpoolQuota(MIB)
    large = open_spool(tmp_path / "large", quota, is_sink=True)
    small = open_spool(tmp_path / "small", quota, is_sink=True)
    for number in range(3000):
        large.append(round_of(number, message=os.urandom(400).hex()))
        if number % 10 == 0:
            small.append(round_of(number))
    assert (small.polls, small.dropped) == (300, 0)
    assert large.dropped > 0
    assert large.polls + large.dropped == 3000


def test_the_ledger_alone_has_the_whole_quota(tmp_path: Path) -> None:
    """Space that no sink needs is not reserved."""
    quota = SpoolQuota(MIB)
    ledger = open_spool(tmp_path / "ledger", quota)
    open_spool(tmp_path / "sink", quota, is_sink=True)
    append_polls(ledger, 3000)
    assert ledger.size > 0.8 * MIB
    assert ledger.dropped == 3000 - ledger.polls


def test_dropped_polls_are_logged_with_numbers_and_not_for_every_round(directory: Path) -> None:
    """An operator gets a few lines with counts."""
    with capture_logs() as lines:
        waiting = open_spool(directory, SpoolQuota(MIB))
        for number in range(5000):
            waiting.append(round_of(number, message=os.urandom(400).hex()))
        waiting.close()
    dropped = [line for line in lines if line["event"] == "polls_dropped"]
    assert len(dropped) <= 3
    assert dropped[-1]["in_all"] == waiting.dropped > 0
    assert sum(line["polls"] for line in dropped) == waiting.dropped


def test_rounds_wait_in_memory_while_the_disk_fails() -> None:
    """The newest rounds stay within the limit, and the reason is logged once."""

    def nowhere() -> Path:
        raise OSError(errno.EROFS, "Read-only file system")

    with capture_logs() as lines:
        waiting: Spool[Run] = Spool("ledger", RunCodec(), nowhere, SpoolQuota(MIB))
        for number in range(spool.MEMORY_POLLS + 100):
            waiting.append(round_of(number))
    assert waiting.polls == spool.MEMORY_POLLS
    assert waiting.dropped == 100
    assert write_all(waiting) == list(range(100, spool.MEMORY_POLLS + 100))
    assert [
        "Read-only" in line["error"] for line in lines if line["event"] == "spool_unusable"
    ] == [True]


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> Callable[[], AbstractContextManager[None]]:
    """Return a context of a disk with space for a head, and for half a round."""
    real = os.pwrite

    def half(file: int, data: bytes, offset: int) -> int:
        return real(file, data if len(data) <= 24 else data[: len(data) // 2], offset)

    @contextmanager
    def full() -> Iterator[None]:
        with monkeypatch.context() as patched:
            patched.setattr(spool_file.os, "pwrite", half)
            yield

    return full


def test_a_disk_that_is_full_for_a_while_loses_no_round(
    directory: Path, full_disk: Callable[[], AbstractContextManager[None]]
) -> None:
    """Rounds in memory go to disk, in order, when the disk has space again."""
    waiting = open_spool(directory)
    waiting.append(round_of(0))
    with full_disk():
        waiting.append(round_of(1))
        waiting.append(round_of(2))
    assert waiting.polls == 3
    waiting.append(round_of(3))
    assert write_all(open_spool(directory)) == [0, 1, 2, 3]
    assert waiting.dropped == 0


def test_a_half_written_round_is_truncated(
    directory: Path, full_disk: Callable[[], AbstractContextManager[None]]
) -> None:
    """A worker that is killed on a full disk leaves a sound file."""
    waiting = open_spool(directory)
    waiting.append(round_of(0))
    with full_disk():
        waiting.append(round_of(1))
    assert write_all(open_spool(directory)) == [0]
    assert list(directory.glob("*.damaged")) == []


def test_rounds_that_a_full_disk_refused_are_written_from_memory(
    directory: Path, full_disk: Callable[[], AbstractContextManager[None]]
) -> None:
    """The empty file that was created for them is deleted."""
    waiting = open_spool(directory)
    with full_disk():
        waiting.append(round_of(0))
        waiting.append(round_of(1))
        assert write_all(waiting) == [0, 1]
    assert not waiting
    assert list(directory.glob("*.*")) == []


def fill(directory: Path, files: int = 3) -> list[Path]:
    """Write files of ten rounds each."""
    directory.mkdir()
    for number in range(files):
        one: Spool[Run] = Spool("ledger", RunCodec(), lambda: directory, SpoolQuota(MIB))
        for each in range(10):
            one.append(round_of(number * 10 + each))
    return sorted(directory.glob("*.rounds"))


def test_damage_costs_only_the_rest_of_its_file(directory: Path) -> None:
    """Rounds before the damage and other files are written; the damaged file is renamed."""
    _, second, _ = fill(directory)
    content = bytearray(second.read_bytes())
    content[len(content) * 3 // 4] ^= 0xFF
    second.write_bytes(content)
    with capture_logs() as lines:
        waiting = open_spool(directory)
        left = write_all(waiting)
    assert left[:10] == list(range(10))
    assert left[-10:] == list(range(20, 30))
    assert 10 in left
    assert len(left) + waiting.dropped == 30
    assert [path.name for path in directory.glob("*.*")] == [second.with_suffix(".damaged").name]
    [damaged] = [line for line in lines if line["event"] == "spool_file_damaged"]
    assert second.stem in damaged["file"]


def test_a_round_with_one_changed_bit_is_not_written(tmp_path: Path) -> None:
    """No reading is better than a wrong one."""
    target = PollTarget(7, 1, "t", 3, "d", "127.0.0.1", "", "fake", 60_000, 5_000)
    readings = ReadingSet.of(Reading("m", float(n), {"n": str(n)}) for n in range(100))
    waiting: Spool[Sample] = Spool("sink-sql", SampleCodec(), lambda: tmp_path, SpoolQuota(MIB))
    waiting.append([Sample(target, 1, readings)])
    [path] = tmp_path.glob("*.rounds")
    content = bytearray(path.read_bytes())
    content[-20] ^= 0x01
    path.write_bytes(content)
    successor: Spool[Sample] = Spool("sink-sql", SampleCodec(), lambda: tmp_path, SpoolQuota(MIB))
    successor.open()
    assert successor.oldest(10).rounds == []
    assert successor.dropped == 1


def test_a_file_with_half_a_round_at_its_end_is_set_aside(directory: Path) -> None:
    """The worker was killed while it wrote; that poll was not finished either."""
    _, second, _ = fill(directory)
    content = second.read_bytes()
    second.write_bytes(content[:-5])
    assert write_all(open_spool(directory)) == [*range(19), *range(20, 30)]
    assert second.with_suffix(".damaged").read_bytes()[24:] == content[24:-5]


def test_foreign_files_are_left_alone_or_set_aside(directory: Path) -> None:
    """Text, an empty file, a pickle, a pipe, a link and a directory have the right suffix."""
    fill(directory)
    (directory / "0.rounds").write_text("hello " * 100)
    (directory / "1.rounds").write_bytes(b"")
    (directory / "2.rounds").write_bytes(b"\x80\x04\x95" + bytes(50))
    os.mkfifo(directory / "3.rounds")
    (directory / "4.rounds").symlink_to("/etc/hostname")
    (directory / "5.rounds").mkdir()
    (directory / "notes.txt").write_text("text")
    assert write_all(open_spool(directory)) == list(range(30))
    assert (directory / "0.damaged").read_text().startswith("hello")
    assert (directory / "notes.txt").read_text() == "text"


def test_a_file_of_another_destination_is_set_aside(tmp_path: Path) -> None:
    """A file that was moved to the wrong directory is not written as something else."""
    [path] = fill(tmp_path / "ledger", files=1)
    (tmp_path / "sink").mkdir()
    path.rename(tmp_path / "sink" / path.name)
    directory = tmp_path / "sink"
    waiting = Spool("sink-sql", SampleCodec(), lambda: directory, SpoolQuota(MIB))
    waiting.open()
    assert waiting.oldest(10).rounds == []
    assert [one.suffix for one in directory.iterdir()] == [".damaged"]


def test_refused_rounds_are_stored_for_a_person(directory: Path) -> None:
    """A renamed file is read again; their number is limited, so refusals do not fill the disk."""
    waiting = open_spool(directory)
    for number in range(spool.MAX_REFUSED_FILES + 3):
        waiting.append(round_of(number))
    for _ in range(spool.MAX_REFUSED_FILES + 2):
        waiting.refuse(waiting.oldest(1), "no")
    assert write_all(waiting) == [spool.MAX_REFUSED_FILES + 2]
    assert waiting.dropped == spool.MAX_REFUSED_FILES + 2
    refused = sorted(directory.glob("*.refused"))
    assert len(refused) == spool.MAX_REFUSED_FILES
    refused[0].rename(refused[0].with_suffix(".rounds"))
    assert write_all(open_spool(directory)) == [0]


def test_a_round_that_cannot_be_packed_does_not_stop_others(directory: Path) -> None:
    """A plugin may yield a value that JSON does not have."""
    waiting = open_spool(directory)
    waiting.append(round_of(1))
    waiting.append([Run(2, 0, Result.OK, message=b"\x00")])  # type: ignore[arg-type]
    waiting.append(round_of(3))
    assert write_all(waiting) == [1, 3]
    assert waiting.dropped == 1


class Restarts(RuleBasedStateMachine):
    """Compares a spool with a list, in any order of appending, writing and restarts."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp()) / "ledger"
        self.spool = open_spool(self.directory, SpoolQuota(64 * MIB))
        self.model: list[int] = []
        self.next = 0

    @rule(count=st.integers(1, 30))
    def append(self, count: int) -> None:
        for _ in range(count):
            self.spool.append(round_of(self.next))
            self.model.append(self.next)
            self.next += 1

    @rule(polls=st.integers(1, 40))
    def write_some(self, polls: int) -> None:
        taken = self.spool.oldest(polls)
        written = numbers(taken)
        assert written == self.model[: len(written)]
        assert written or not self.model
        self.spool.remove(taken)
        del self.model[: len(written)]

    @rule(polls=st.integers(1, 40))
    def read_only(self, polls: int) -> None:
        read = numbers(self.spool.oldest(polls))
        assert read == self.model[: len(read)]

    @rule()
    def be_killed_and_started(self) -> None:
        self.spool = open_spool(self.directory, SpoolQuota(64 * MIB))

    @invariant()
    def counts(self) -> None:
        assert self.spool.polls == len(self.model)
        assert bool(self.spool) == bool(self.model)

    def teardown(self) -> None:
        shutil.rmtree(self.directory.parent)


TestRestarts = Restarts.TestCase
TestRestarts.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
