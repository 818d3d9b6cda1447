"""The reports of prefork children reach the heartbeat of their worker."""

from __future__ import annotations

from poller.domain.record.sink_report import SinkReport, SinkState
from poller.workers.process.child_reports import ROW_BYTES, ChildReports


def report(name: str, error: str = "") -> SinkReport:
    return SinkReport(name, "fake", SinkState.DOWN, error=error, dropped={"full": 1})


def test_reports_of_all_children_are_read() -> None:
    """A child that reported nothing yet has none."""
    shared = ChildReports(3)
    shared.write(0, [report("a"), report("b")])
    shared.write(2, [report("a", "no route")])
    shared.write(0, [report("a")])
    assert shared.read_all() == [report("a"), report("a", "no route")]


def test_a_text_that_is_being_written_counts_as_none() -> None:
    """The heartbeat and the children share no lock."""
    shared = ChildReports(1)
    shared.write(0, [report("a")])
    shared._page[20:21] = b"\0"
    assert shared.read_all() == []


def test_reports_without_room_are_left_out() -> None:
    """A row never reaches into the next one."""
    shared = ChildReports(2)
    shared.write(0, [report("a"), report("b", "x" * ROW_BYTES)])
    assert shared.read_all() == [report("a")]
