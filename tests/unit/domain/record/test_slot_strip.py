"""The strip of a device: worst state of each half hour, and the numbers behind it."""

from __future__ import annotations

from itertools import pairwise

from poller.domain.failures.outcome import Result
from poller.domain.fleet.day_slots import SLOT_MS, Slot
from poller.domain.record import slot_strip
from poller.domain.record.slot_strip import RunCount

NOW = 100 * 86_400_000 + 17 * SLOT_MS + 1234


def at(ago: int) -> int:
    return slot_strip.slot_of(NOW) - ago * SLOT_MS


def test_a_slot_shows_its_worst_outcome_and_counts_all() -> None:
    """One failure among thirty polls is seen."""
    counts = [
        RunCount(at(3), Result.OK, 28),
        RunCount(at(3), Result.FAILED, 1),
        RunCount(at(3), Result.PARTIAL, 1),
    ]
    slot = slot_strip.strip(counts, NOW)[-4]
    assert (slot.state, slot.runs, slot.good) == (Slot.FAILED, 30, 29)


def test_a_slot_without_a_poll_has_no_state() -> None:
    """A missing poll is never drawn as a good one; a stale message is no poll."""
    slots = slot_strip.strip([RunCount(at(1), Result.STALE, 5)], NOW)
    assert {slot.state for slot in slots} == {Slot.NONE}
    assert slot_strip.good_share(slots) == (0, 0)


def test_the_strip_is_a_day_that_ends_now() -> None:
    """48 slots; the last one ends now and not at its full half hour."""
    slots = slot_strip.strip([], NOW)
    assert len(slots) == 48
    assert slots[-1].end_ms == NOW
    assert slots[0].start_ms == slot_strip.first_slot_ms(NOW)
    assert all(a.end_ms == b.start_ms for a, b in pairwise(slots))


def test_runs_of_another_day_are_left_out() -> None:
    """The slot before the first one is yesterday's."""
    slots = slot_strip.strip([RunCount(at(48), Result.FAILED, 1)], NOW)
    assert {slot.state for slot in slots} == {Slot.NONE}
