"""What a process that dies during a poll leaves in its black box, and which process reads it."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from poller.workers.guard import black_box, running_code
from poller.workers.guard.black_box import SLOTS, BlackBox, CrashRecord, RunningBatch
from poller.workers.guard.running_code import BATCH, TARGET, RunningPoll

TOKEN = "7.18f00000000.0123456789"


def die_during_a_poll(home: Path) -> None:
    """Die with two running batches while one target's code runs."""
    box = BlackBox(home, "worker1@host", {"snmp": "poller 1.0", "acme": "acme plugins 0.2"})
    with (
        box.record_batch(TOKEN, 1, 64, "poll.snmp;site=ams") as number,
        box.record_batch(TOKEN, 0, 3, "poll.acme"),
    ):
        box.cells[BATCH] = number
        box.cells[TARGET] = 4711
        os.kill(os.getpid(), signal.SIGKILL)


def end_cleanly(home: Path) -> None:
    BlackBox(home, "worker1@host").close()


def read(home: Path) -> list[CrashRecord]:
    records: list[CrashRecord] = []
    black_box.read_crashes(home, records.append)
    return records


def record_of_a_copy(box: BlackBox, home: Path) -> CrashRecord:
    """Return the record that a reader would get if the process died now: a copy is not locked."""
    [path] = (home / "flights").iterdir()
    shutil.copy(path, path.with_name("1-dead"))
    [record] = read(home)
    box.close()
    return record


def run(home: Path, function: Callable[[Path], None]) -> None:
    process = multiprocessing.get_context("spawn").Process(target=function, args=(home,))
    process.start()
    process.join(30)


def test_the_record_of_a_killed_process_is_read_once(tmp_path: Path) -> None:
    """It has the target whose code ran, the target's batch, and all other running batches."""
    run(tmp_path, die_during_a_poll)
    [record] = read(tmp_path)
    assert (record.worker, record.target_id) == ("worker1@host", 4711)
    assert record.batch == RunningBatch(1, TOKEN, 1, 64, "poll.snmp;site=ams")
    assert record.releases == {"snmp": "poller 1.0", "acme": "acme plugins 0.2"}
    assert {each.collector: each.targets for each in record.batches} == {"snmp": 64, "acme": 3}
    assert read(tmp_path) == []


def test_releases_beyond_the_page_are_left_out_not_cut_in_half(tmp_path: Path) -> None:
    """Half a version would be another version."""
    releases = {f"collector{number}": f"plugin 1.{number}" for number in range(1000)}
    recorded = BlackBox(tmp_path, "w", releases).snapshot().releases
    assert 100 < len(recorded) < 1000
    assert recorded.items() <= releases.items()


def test_a_clean_end_leaves_no_file(tmp_path: Path) -> None:
    """A process that closes its black box deletes the file."""
    run(tmp_path, end_cleanly)
    assert list((tmp_path / "flights").iterdir()) == []


def test_the_file_of_a_live_process_is_not_read(tmp_path: Path) -> None:
    """The process itself does not read its own file either."""
    box = BlackBox(tmp_path, "worker1@host")
    assert read(tmp_path) == []
    box.close()


def test_a_record_whose_report_fails_stays(tmp_path: Path) -> None:
    """A database that is away does not lose the record."""
    run(tmp_path, die_during_a_poll)

    def fail(_: CrashRecord) -> None:
        raise ConnectionError

    with pytest.raises(ConnectionError):
        black_box.read_crashes(tmp_path, fail)
    assert len(read(tmp_path)) == 1


def test_a_batch_that_has_ended_is_not_recorded(tmp_path: Path) -> None:
    """A task that outlives its batch is not attributed to the next batch."""
    box = BlackBox(tmp_path, "w")
    with box.record_batch(TOKEN, 0, 64, "poll.snmp") as ended:
        pass
    with box.record_batch(TOKEN, 0, 5, "poll.acme") as running:
        box.cells[BATCH] = ended
        box.cells[TARGET] = 9
        record = box.snapshot()
        assert (record.target_id, record.batch) == (9, None)
        assert [each.number for each in record.batches] == [running]
    assert box.snapshot().batches == ()


def test_a_poll_named_by_the_fault_is_blamed_even_if_another_runs_later(tmp_path: Path) -> None:
    """The record still has its batch, although the batch ended before the process did."""
    box = BlackBox(tmp_path, "w")
    with box.record_batch(TOKEN, 0, 5, "poll.other") as other:
        with box.record_batch(TOKEN, 0, 64, "poll.acme") as number:
            fault = "the loop stood still at acme.py:1 collect"
            box.record_fault(running_code.blame(RunningPoll(9, number), fault))
        box.cells[BATCH] = other
        box.cells[TARGET] = 10
        record = record_of_a_copy(box, tmp_path)
    assert record.batch is not None
    assert (record.target_id, record.batch.collector) == (9, "acme")
    assert record.fault.endswith("the loop stood still at acme.py:1 collect")


def test_a_fault_that_names_no_poll_blames_none(tmp_path: Path) -> None:
    """Neither the last batch on the loop nor the only one in a thread is blamed."""
    box = BlackBox(tmp_path, "w")
    with (
        box.record_batch(TOKEN, 0, 64, "poll.acme") as number,
        box.thread_marks.marked(RunningPoll(9, number)),
    ):
        box.cells[BATCH] = number
        box.cells[TARGET] = 0
        idle = running_code.on_loop(box.cells)
        box.record_fault(running_code.blame(idle, "the loop stood still"))
        record = record_of_a_copy(box, tmp_path)
    assert (record.target_id, record.batch) == (0, None)


def test_batches_beyond_the_page_are_left_out(tmp_path: Path) -> None:
    """They are polled all the same."""
    box = BlackBox(tmp_path, "w")
    batches = [box.record_batch(TOKEN, 0, 1, "poll.snmp") for _ in range(SLOTS + 2)]
    for batch in batches:
        batch.__enter__()
    assert len(box.snapshot().batches) == SLOTS
    for batch in batches:
        batch.__exit__(None, None, None)
    assert box.snapshot().batches == ()


def test_a_home_that_cannot_be_written_stops_no_polling(tmp_path: Path) -> None:
    """The black box then exists only in memory."""
    (tmp_path / "flights").write_text("in the way")
    box = BlackBox(tmp_path, "w")
    with box.record_batch(TOKEN, 0, 1, "poll.snmp"):
        assert len(box.snapshot().batches) == 1
    box.close()


@pytest.mark.parametrize(
    "content", [b"", b"x", b"\xff" * 60_000, os.urandom(60_000)], ids=["none", "one", "ff", "any"]
)
def test_a_damaged_file_is_read_without_an_error(tmp_path: Path, content: bytes) -> None:
    """A crash of the whole host can leave any content."""
    (tmp_path / "flights").mkdir()
    (tmp_path / "flights" / "1-abc").write_bytes(content)
    assert len(read(tmp_path)) == 1
    assert read(tmp_path) == []
