"""The grid: stable, even, never drifting."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from poller.domain.scheduling import slots

ids = st.integers(1, 2**40)
intervals = st.integers(1000, 7 * 86_400_000)
instants = st.integers(1_000_000_000_000, 3_000_000_000_000)


@given(ids, intervals, instants)
def test_next_slot_is_after_now_and_within_one_interval(
    target: int, interval: int, now: int
) -> None:
    """The next slot is always ahead, never further than one interval."""
    slot = slots.next_slot_ms(target, interval, now)
    assert now < slot <= now + interval


@given(ids, intervals, instants)
def test_slots_never_drift(target: int, interval: int, now: int) -> None:
    """The next slot is exactly one interval away, at any instant."""
    slot = slots.next_slot_ms(target, interval, now)
    assert slots.next_slot_ms(target, interval, slot) == slot + interval
    assert slots.next_slot_ms(target, interval, slot + interval - 1) == slot + interval


def test_a_fleet_spreads_evenly() -> None:
    """10,000 targets at 60 s put about the same number into every second."""
    seconds = Counter(slots.phase_ms(i, 60_000) // 1000 for i in range(1, 10_001))
    assert len(seconds) == 60
    assert max(seconds.values()) < 1.4 * 10_000 / 60


def test_missed_slots_are_those_between_two_runs() -> None:
    """None for the first run or the next slot; three after four intervals."""
    assert slots.missed_slots(0, 1_000_000, 60_000) == 0
    assert slots.missed_slots(1_000_000, 1_060_000, 60_000) == 0
    assert slots.missed_slots(1_000_000, 1_240_000, 60_000) == 3
    assert slots.missed_slots(1_000_000, 1_010_000, 60_000) == 0  # a demand between two slots


@given(ids, intervals, instants)
def test_an_overdue_target_is_polled_within_its_interval_and_a_minute(
    target: int, interval: int, now: int
) -> None:
    """After downtime: once, soon."""
    assert (
        now <= slots.resume_ms(target, interval, now) < now + min(interval, slots.RESUME_WITHIN_MS)
    )


def test_a_poll_is_behind_after_half_its_interval_and_five_seconds() -> None:
    """A tick of the leader is no sign of too much work, however short the interval."""
    assert not slots.is_behind(1_000_000, 1_030_000, 60_000)
    assert slots.is_behind(1_000_000, 1_030_001, 60_000)
    assert not slots.is_behind(1_000_000, 1_005_000, 1_000)
    assert slots.is_behind(1_000_000, 1_005_001, 1_000)
