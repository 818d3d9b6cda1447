"""The last 24 hours of a device in slots of half an hour, each with the worst outcome in it.

A slot without a run is a gap, never the state of the slot before it.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import NamedTuple

SLOT_MS = 1_800_000
SLOTS = 48


class Slot(enum.StrEnum):
    """The state of a slot: the worst outcome of its polls."""

    NONE = "none"  # nothing was polled
    OK = "ok"
    PARTIAL = "partial"
    FAILED = "failed"


class SlotCount(NamedTuple):
    """The worst outcome of one slot, as the ledger counts it: 0 ok, 1 partial, 2 failed."""

    slot: int  # its start, in units of SLOT_MS
    worst: int


_OF_WORST = (Slot.OK, Slot.PARTIAL, Slot.FAILED)


def first_slot(now_ms: int) -> int:
    """Return the oldest slot of the strip that ends now."""
    return now_ms // SLOT_MS - SLOTS + 1


def slots(counts: Iterable[SlotCount], now_ms: int) -> list[Slot]:
    """Return the slots of the last 24 hours, oldest first. The last one ends now."""
    first = first_slot(now_ms)
    found = [Slot.NONE] * SLOTS
    for count in counts:
        place = count.slot - first
        if 0 <= place < SLOTS:
            found[place] = _OF_WORST[min(count.worst, 2)]
    return found


def stretches(slots: Iterable[Slot]) -> list[tuple[Slot, int, int]]:
    """Return runs of equal slots: the slot, its place, and how many follow each other."""
    found: list[tuple[Slot, int, int]] = []
    for place, slot in enumerate(slots):
        if found and found[-1][0] is slot:
            found[-1] = (slot, found[-1][1], found[-1][2] + 1)
        else:
            found.append((slot, place, 1))
    return found
