"""Snapshots of the processes of one host."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from poller.observability.exposition.snapshot_files import DIRECTORY, SnapshotFiles
from poller.observability.exposition.text_format import Family

ONE = {"poller_x": Family("gauge", "X.", ["poller_x 1"])}


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[SnapshotFiles]:
    files = SnapshotFiles(tmp_path, "host")
    files.take_name("reader")
    yield files
    files.release()


def test_a_living_process_is_seen_by_the_others(tmp_path: Path, reader: SnapshotFiles) -> None:
    worker = SnapshotFiles(tmp_path, "host")
    worker.take_name("w1@host")
    worker.write(ONE)
    assert list(reader.others()) == [ONE]
    worker.release()


def test_a_dead_process_is_not_seen_and_its_file_goes(
    tmp_path: Path, reader: SnapshotFiles
) -> None:
    """Its lock ended with it, whatever its end was."""
    worker = SnapshotFiles(tmp_path, "host")
    worker.take_name("w1@host")
    worker.write(ONE)
    worker.release()  # what the kernel does at the end of a process
    assert list(reader.others()) == []
    names = [path.name for path in (tmp_path / DIRECTORY).iterdir()]
    assert names == ["host~reader.json"]


def test_a_second_process_of_a_name_gets_a_number(tmp_path: Path, reader: SnapshotFiles) -> None:
    second = SnapshotFiles(tmp_path, "host")
    assert second.take_name("reader") == "reader#2"
    second.release()


def test_a_restarted_process_keeps_its_name(tmp_path: Path) -> None:
    """Its series go on: a counter that begins again is a reset, which Prometheus knows."""
    before = SnapshotFiles(tmp_path, "host")
    before.take_name("w1@host")
    before.release()
    after = SnapshotFiles(tmp_path, "host")
    assert after.take_name("w1@host") == "w1@host"
    after.release()


def test_processes_of_another_host_are_left_out(tmp_path: Path, reader: SnapshotFiles) -> None:
    """Containers may share a home; each has an address of its own."""
    other = SnapshotFiles(tmp_path, "elsewhere")
    other.take_name("w1@elsewhere")
    other.write(ONE)
    assert list(reader.others()) == []
    other.release()


def test_a_damaged_snapshot_hides_no_other(tmp_path: Path, reader: SnapshotFiles) -> None:
    one, two = SnapshotFiles(tmp_path, "host"), SnapshotFiles(tmp_path, "host")
    one.take_name("a")
    two.take_name("b")
    two.write(ONE)
    (tmp_path / DIRECTORY / "host~a.json").write_text("{")  # the same file, which `one` has locked
    assert list(reader.others()) == [{}, ONE]
    one.release()
    two.release()


def test_a_forked_child_does_not_keep_its_parent_alive(
    tmp_path: Path, reader: SnapshotFiles
) -> None:
    """A child that lets go of the inherited file does not hold its lock."""
    worker = SnapshotFiles(tmp_path, "host")
    worker.take_name("w1@host")
    from_child, to_parent = os.pipe()
    from_parent, to_child = os.pipe()
    child = os.fork()
    if not child:
        worker.release()
        os.write(to_parent, b"x")
        os.read(from_parent, 1)  # lives on until the test ends
        os._exit(0)
    os.read(from_child, 1)
    worker.release()
    assert list(reader.others()) == []
    os.write(to_child, b"x")
    os.waitpid(child, 0)
    for file in (from_child, to_parent, from_parent, to_child):
        os.close(file)


def test_one_process_has_a_duty_at_a_time(tmp_path: Path, reader: SnapshotFiles) -> None:
    other = SnapshotFiles(tmp_path, "host")
    held = reader.take_duty("file")
    assert held is not None
    assert other.take_duty("file") is None
    os.close(held)
    taken = other.take_duty("file")
    assert taken is not None
    os.close(taken)
