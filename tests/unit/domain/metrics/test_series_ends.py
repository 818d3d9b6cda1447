"""Which series end after a poll, and which ends belong to a target that is overdue."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from poller.domain.inventory.poll_target import PollTarget
from poller.domain.metrics import series_ends
from poller.domain.metrics.reading import Kind, Series, SeriesSet
from poller.domain.metrics.series_ends import LastSent, Reason, SentNow, SeriesEnd, Standing
from poller.domain.record.target_status import Status

TARGET = PollTarget(1, 1, "fast", 1, "sw1", "192.0.2.1", "ams", "snmp", 60_000, 5_000)
RENAMED = replace(TARGET, version=2, device="sw2")


def shape(*names: str, kind: Kind = Kind.GAUGE) -> SeriesSet:
    return SeriesSet(tuple(Series(name, (("if", "1"),), kind) for name in names))


BOTH = shape("rx", "tx")
RX = shape("rx")
TX = shape("tx")
NONE = shape()


def last(sent: SeriesSet = BOTH, target: PollTarget = TARGET) -> LastSent:
    return LastSent(target, sent, at_ms=1_000, finished_ms=1_010)


def status(finished_ms: int = 1_010, sent: SeriesSet | None = BOTH) -> Status:
    shape_id = sent.id if sent else 0
    return Status(finished_ms=finished_ms, shape=shape_id)


def ends(
    sent: SeriesSet | None,
    before: LastSent | None,
    on_board: Status,
    elsewhere: SeriesSet | None = None,
    target: PollTarget = TARGET,
) -> list[SeriesEnd]:
    now = SentNow(target, sent, 2_000)
    is_renamed = target is RENAMED
    found = series_ends.after_poll(now, before, on_board, elsewhere, is_renamed=is_renamed)
    assert found == [] or may_end(now, before, on_board, is_renamed)
    return found


def may_end(
    now: SentNow, before: LastSent | None, on_board: Status, is_renamed: bool = False
) -> bool:
    return series_ends.may_end(now, before, on_board, is_renamed=is_renamed)


def test_a_poll_of_the_same_shape_ends_nothing() -> None:
    """That is true for nearly all polls, and a glance shows it."""
    assert ends(BOTH, last(), status()) == []
    assert not may_end(SentNow(TARGET, BOTH, 2_000), last(), status())
    assert not may_end(SentNow(TARGET, BOTH, 2_000), None, status())
    assert not may_end(SentNow(TARGET, None, 2_000), None, status(sent=None))


def test_a_series_that_a_poll_does_not_have_ends_with_it() -> None:
    """The series that the poll has go on, new ones start."""
    vanished = SeriesEnd(TARGET, TX, 2_000, Reason.VANISHED)
    assert ends(RX, last(), status()) == [vanished]
    assert ends(shape("rx", "errors"), last(), status()) == [vanished]
    assert ends(BOTH, last(RX), status(sent=RX)) == []


def test_all_series_of_a_target_end_when_it_fails() -> None:
    """After that there is nothing to end."""
    assert ends(None, last(), status()) == [SeriesEnd(TARGET, BOTH, 2_000, Reason.FAILED)]
    assert ends(None, None, status(sent=None)) == []
    assert ends(None, last(NONE), status(sent=NONE)) == []


def test_what_another_worker_sent_ends_here() -> None:
    """The board names the shape; what this worker sent before that has no effect."""
    newer = status(finished_ms=1_500)
    now = SentNow(TARGET, RX, 2_000)
    assert series_ends.shape_elsewhere(now, None, newer) == BOTH.id
    assert series_ends.shape_elsewhere(now, last(RX), newer) == BOTH.id
    assert series_ends.shape_elsewhere(now, last(), status()) == 0
    assert series_ends.shape_elsewhere(SentNow(TARGET, BOTH, 2_000), None, newer) == 0
    assert ends(RX, last(RX), newer, BOTH) == [SeriesEnd(TARGET, TX, 2_000, Reason.VANISHED)]
    assert ends(RX, last(), newer, None) == []


def test_a_worker_remembers_what_a_flushed_board_forgot() -> None:
    """The status of a new board has neither a shape nor a poll."""
    assert ends(RX, last(), Status()) == [SeriesEnd(TARGET, TX, 2_000, Reason.VANISHED)]
    assert ends(BOTH, last(), Status()) == []


def test_a_renamed_target_ends_all_series_with_the_old_labels() -> None:
    """They end before the readings with the new labels, also when the poll fails."""
    old = SeriesEnd(TARGET, BOTH, 1_999, Reason.RENAMED)
    assert ends(BOTH, last(), status(), target=RENAMED) == [old]
    assert ends(RX, last(), status(), target=RENAMED) == [old]
    assert ends(None, last(), status(), target=RENAMED) == [old]
    newer = status(finished_ms=1_500)
    vanished = SeriesEnd(RENAMED, TX, 2_000, Reason.VANISHED)
    assert ends(RX, last(), newer, BOTH, target=RENAMED) == [old, vanished]


def test_another_kind_or_width_makes_no_other_series() -> None:
    """A store outside knows a series by its name and labels."""
    assert series_ends.missing(shape("rx"), shape("rx", kind=Kind.COUNTER)) is None


names = st.sets(st.sampled_from("abcdef"))


@given(names, names)
def test_ends_are_the_series_that_only_the_old_shape_has(old: set[str], new: set[str]) -> None:
    """No series is in the new poll and ended."""
    found = series_ends.missing(shape(*sorted(old)), shape(*sorted(new)))
    ended = {series.name for series in found.series} if found else set()
    assert ended == old - new


NOW_MS = 100_000


def overdue(standing: Standing, *, is_renamed: bool = False) -> SeriesEnd | None:
    return series_ends.overdue_end(last(), standing, NOW_MS, is_renamed=is_renamed)


def test_an_overdue_target_that_is_polled_no_more_ends() -> None:
    """Its series end now: it is removed or disabled, or waits and is left alone."""
    for standing in (Standing(None), Standing(1, 1_010), Standing(1)):
        assert overdue(standing) == SeriesEnd(TARGET, BOTH, NOW_MS, Reason.GONE)


def test_an_overdue_target_may_only_wait() -> None:
    """It is late, or waits on a new board."""
    for waiting in (Standing(1, 1_010), Standing(2, 1_010), Standing(1)):
        assert series_ends.is_waiting(last(), waiting)
    for other in (Standing(None), Standing(1, 1_011)):
        assert not series_ends.is_waiting(last(), other)


def test_a_target_that_another_worker_polls_is_left_to_it() -> None:
    """That worker ends its series, also those of a shape that it could not end yet."""
    assert overdue(Standing(1, 90_000)) is None
    assert overdue(Standing(1, 90_000, left_over=RX.id)) is None


def test_series_that_another_worker_could_not_end_are_ended_by_their_sender() -> None:
    """They end with the poll that failed, not now: the target may be well again."""
    left_over = Standing(1, 90_000, left_over=BOTH.id)
    assert overdue(left_over) == SeriesEnd(TARGET, BOTH, 90_000, Reason.FAILED)


def test_a_renamed_target_that_another_worker_polls_ends_under_its_old_labels() -> None:
    """They end now: a third worker may have polled it under them."""
    polled = Standing(2, 90_000)
    assert overdue(polled, is_renamed=True) == SeriesEnd(TARGET, BOTH, NOW_MS, Reason.RENAMED)


def test_an_end_is_later_than_the_last_readings() -> None:
    """The clock of Redis may have been set back."""
    end = series_ends.overdue_end(last(), Standing(None), 5, is_renamed=False)
    assert end is not None
    assert end.at_ms == 1_001
