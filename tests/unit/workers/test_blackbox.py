"""What a process leaves that dies while it polls, and who reads it."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from poller.workers.guard import black_box, marks
from poller.workers.guard.black_box import SLOTS, BlackBox, Flight, Wreck
from poller.workers.guard.marks import FLIGHT, TARGET

TOKEN = "7.18f00000000.0123456789"


def die_in_flight(home: Path) -> None:
    """Two batches under way, one target's code running: then no time for anything."""
    box = BlackBox(home, "worker1@host", {"snmp": "poller 1.0", "acme": "acme plugins 0.2"})
    with (
        box.noted(TOKEN, 1, 64, "poll.snmp;site=ams") as number,
        box.noted(TOKEN, 0, 3, "poll.acme"),
    ):
        box.cells[FLIGHT], box.cells[TARGET] = number, 4711
        os.kill(os.getpid(), signal.SIGKILL)


def end_cleanly(home: Path) -> None:
    BlackBox(home, "worker1@host").close()


def wrecks(home: Path) -> list[Wreck]:
    found: list[Wreck] = []
    black_box.open_wrecks(home, found.append)
    return found


def left_by(box: BlackBox, home: Path) -> Wreck:
    """What would be read if it died now: of a copy, of which nobody holds the lock."""
    [path] = (home / "flights").iterdir()
    shutil.copy(path, path.with_name("1-dead"))
    [wreck] = wrecks(home)
    box.close()
    return wreck


def run(home: Path, what: Callable[[Path], None]) -> None:
    process = multiprocessing.get_context("spawn").Process(target=what, args=(home,))
    process.start()
    process.join(30)


def test_a_killed_process_tells_what_it_was_doing(tmp_path: Path) -> None:
    """Whose code ran, in which batch, and what else was under way; and only once."""
    run(tmp_path, die_in_flight)
    [wreck] = wrecks(tmp_path)
    assert (wreck.worker, wreck.target_id) == ("worker1@host", 4711)
    assert wreck.flight == Flight(1, TOKEN, 1, 64, "poll.snmp;site=ams")
    assert wreck.releases == {"snmp": "poller 1.0", "acme": "acme plugins 0.2"}
    assert {each.collector: each.targets for each in wreck.flights} == {"snmp": 64, "acme": 3}
    assert wrecks(tmp_path) == []


def test_more_collectors_than_can_be_noted_are_left_out_not_cut_in_half(tmp_path: Path) -> None:
    """Half a version would be another one."""
    releases = {f"collector{number}": f"plugin 1.{number}" for number in range(1000)}
    noted = BlackBox(tmp_path, "w", releases).now().releases
    assert 100 < len(noted) < 1000
    assert noted.items() <= releases.items()


def test_a_clean_end_leaves_nothing(tmp_path: Path) -> None:
    """No file, no question."""
    run(tmp_path, end_cleanly)
    assert list((tmp_path / "flights").iterdir()) == []


def test_the_living_are_left_alone(tmp_path: Path) -> None:
    """Also by themselves."""
    box = BlackBox(tmp_path, "worker1@host")
    assert wrecks(tmp_path) == []
    box.close()


def test_what_could_not_be_explained_stays(tmp_path: Path) -> None:
    """A database that is away is back some time."""
    run(tmp_path, die_in_flight)

    def fail(_: Wreck) -> None:
        raise ConnectionError

    with pytest.raises(ConnectionError):
        black_box.open_wrecks(tmp_path, fail)
    assert len(wrecks(tmp_path)) == 1


def test_a_batch_that_is_over_is_not_under_way(tmp_path: Path) -> None:
    """And a task that outlives its batch is not taken for one of the next batch."""
    box = BlackBox(tmp_path, "w")
    with box.noted(TOKEN, 0, 64, "poll.snmp") as old:
        pass
    with box.noted(TOKEN, 0, 5, "poll.acme") as new:
        box.cells[FLIGHT], box.cells[TARGET] = old, 9
        now = box.now()
        assert (now.target_id, now.flight, [each.number for each in now.flights]) == (
            9,
            None,
            [new],
        )
    assert box.now().flights == ()


def test_who_was_found_guilty_stays_it_whoever_runs_then(tmp_path: Path) -> None:
    """Its batch, too, is there to be read, even if it came to its end meanwhile."""
    box = BlackBox(tmp_path, "w")
    with box.noted(TOKEN, 0, 5, "poll.other") as other:
        with box.noted(TOKEN, 0, 64, "poll.acme") as guilty:
            box.note_fault(marks.verdict((9, guilty), "the loop stood still at acme.py:1 collect"))
        box.cells[FLIGHT], box.cells[TARGET] = other, 10
        wreck = left_by(box, tmp_path)
    assert wreck.flight is not None
    assert (wreck.target_id, wreck.flight.collector) == (9, "acme")
    assert wreck.fault.endswith("the loop stood still at acme.py:1 collect")


def test_if_nobody_was_found_guilty_nobody_is(tmp_path: Path) -> None:
    """Neither the last batch that ran on the loop, nor the only one that is at work in a thread."""
    box = BlackBox(tmp_path, "w")
    with box.noted(TOKEN, 0, 64, "poll.acme") as last, box.threads.marked((9, last)):
        box.cells[FLIGHT], box.cells[TARGET] = last, 0
        box.note_fault(marks.verdict(marks.on_loop(box.cells), "the loop stood still"))
        wreck = left_by(box, tmp_path)
    assert (wreck.target_id, wreck.flight) == (0, None)


def test_more_batches_than_can_be_noted_are_polled_all_the_same(tmp_path: Path) -> None:
    """Those beyond are left out."""
    box = BlackBox(tmp_path, "w")
    open_ = [box.noted(TOKEN, 0, 1, "poll.snmp") for _ in range(SLOTS + 2)]
    for each in open_:
        each.__enter__()
    assert len(box.now().flights) == SLOTS
    for each in open_:
        each.__exit__(None, None, None)
    assert box.now().flights == ()


def test_a_home_that_cannot_be_written_stops_no_polling(tmp_path: Path) -> None:
    """Then there is nothing to read afterwards."""
    (tmp_path / "flights").write_text("in the way")
    box = BlackBox(tmp_path, "w")
    with box.noted(TOKEN, 0, 1, "poll.snmp"):
        assert len(box.now().flights) == 1
    box.close()


@pytest.mark.parametrize(
    "content", [b"", b"x", b"\xff" * 60_000, os.urandom(60_000)], ids=["none", "one", "ff", "any"]
)
def test_a_damaged_file_tells_less_and_harms_nobody(tmp_path: Path, content: bytes) -> None:
    """A crash of the whole host can leave anything."""
    (tmp_path / "flights").mkdir()
    (tmp_path / "flights" / "1-abc").write_bytes(content)
    assert len(wrecks(tmp_path)) == 1
    assert wrecks(tmp_path) == []
