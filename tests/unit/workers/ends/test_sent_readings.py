"""What a worker sent last is looked at when its target is overdue, and forgotten once."""

from __future__ import annotations

from poller.domain.inventory.poll_target import PollTarget
from poller.domain.metrics.reading import Kind, Series, SeriesSet
from poller.domain.metrics.series_ends import LastSent
from poller.workers.ends.sent_readings import OVERDUE_LIMIT_S, SentReadings

SHAPE = SeriesSet((Series("up", (), Kind.GAUGE),))


def last(target_id: int = 1, interval_s: float = 60, at_ms: int = 1_000) -> LastSent:
    target = PollTarget(
        target_id, 1, "t", 1, "d", "192.0.2.1", "", "fake", round(interval_s * 1000), 500
    )
    return LastSent(target, SHAPE, at_ms, at_ms)


def test_a_target_is_overdue_after_one_and_a_half_intervals() -> None:
    """It is looked at once in that time, until it is polled again."""
    sent = SentReadings()
    first = last()
    sent.update([first], [], 0.0)
    assert sent.overdue(89.9) == {}
    assert sent.overdue(90.0) == {1: first}
    assert sent.overdue(179.9) == {}
    assert sent.overdue(180.0) == {1: first}
    sent.update([last(at_ms=2_000)], [], 181.0)
    assert sent.overdue(270.9) == {}


def test_a_target_with_a_long_interval_is_not_looked_at_too_late() -> None:
    """A store shows the last value for five minutes; an end after that is of no use."""
    sent = SentReadings()
    sent.update([last(interval_s=3600)], [], 0.0)
    assert set(sent.overdue(OVERDUE_LIMIT_S)) == {1}


def test_a_target_that_was_polled_meanwhile_is_not_forgotten() -> None:
    """Only what was looked at is forgotten, and only once."""
    sent = SentReadings()
    old, other = last(), last(2)
    sent.update([old, other], [], 0.0)
    new = last(at_ms=2_000)
    sent.update([new], [], 1.0)
    looked_at = {1: old, 2: other}
    assert sent.forget(looked_at) == {2}
    assert sent.forget(looked_at) == set()
    assert (sent.get(1), sent.get(2)) == (new, None)


def test_a_target_whose_series_have_ended_is_forgotten() -> None:
    """Nothing is left of it."""
    sent = SentReadings()
    sent.update([last()], [], 0.0)
    sent.update([], [1, 2], 1.0)
    assert len(sent) == 0
    assert sent.overdue(1e9) == {}
