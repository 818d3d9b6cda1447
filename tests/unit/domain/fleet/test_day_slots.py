"""The strip of a day: a slot has its worst outcome, and a slot without a poll is a gap."""

from __future__ import annotations

from poller.domain.fleet import day_slots
from poller.domain.fleet.day_slots import SLOT_MS, SLOTS, Slot, SlotCount

NOW_MS = 1_794_874_392_000
NEWEST = NOW_MS // SLOT_MS


def test_the_last_slot_ends_now_and_a_missing_one_is_a_gap() -> None:
    """Nothing is drawn where nothing was polled, also between good slots."""
    counts = [SlotCount(NEWEST - 47, 0), SlotCount(NEWEST - 1, 2), SlotCount(NEWEST, 1)]
    found = day_slots.slots(counts, NOW_MS)
    assert len(found) == SLOTS
    assert (found[0], found[-2], found[-1]) == (Slot.OK, Slot.FAILED, Slot.PARTIAL)
    assert set(found[1:-2]) == {Slot.NONE}


def test_slots_outside_of_the_day_are_left_out() -> None:
    """Neither older runs nor those of a clock that is ahead are drawn."""
    counts = [SlotCount(NEWEST - 48, 2), SlotCount(NEWEST + 1, 2)]
    assert set(day_slots.slots(counts, NOW_MS)) == {Slot.NONE}


def test_equal_slots_are_one_stretch() -> None:
    """The stretches cover all slots in order."""
    slots = [Slot.OK, Slot.OK, Slot.NONE, Slot.FAILED, Slot.FAILED]
    assert day_slots.stretches(slots) == [
        (Slot.OK, 0, 2),
        (Slot.NONE, 2, 1),
        (Slot.FAILED, 3, 2),
    ]
