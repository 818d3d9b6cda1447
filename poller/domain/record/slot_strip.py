"""The strip of a device with the numbers of its runs: the slots of the last 24 hours up to now.

A slot without a poll has no state: it is never drawn as a good one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from poller.domain.failures.outcome import Result
from poller.domain.fleet.day_slots import SLOT_MS, SLOTS, Slot


class RunCount(NamedTuple):
    """Runs of one outcome whose plan time lies in the slot that starts at `slot_ms`."""

    slot_ms: int
    outcome: Result
    runs: int


@dataclass(frozen=True, slots=True)
class StripSlot:
    """One slot: [start, end), its worst state, and its runs."""

    start_ms: int
    end_ms: int
    state: Slot
    runs: int = 0
    good: int = 0


#: Outcomes that a strip shows, worst first. Others say nothing about the device.
_STATES = {
    Result.FAILED: Slot.FAILED,
    Result.REFUSED: Slot.FAILED,
    Result.PARTIAL: Slot.PARTIAL,
    Result.OK: Slot.OK,
}


def first_slot_ms(now_ms: int) -> int:
    """Return the start of the strip that ends with the slot of this instant."""
    return slot_of(now_ms) - (SLOTS - 1) * SLOT_MS


def slot_of(at_ms: int) -> int:
    """Return the start of the slot of an instant."""
    return at_ms // SLOT_MS * SLOT_MS


def strip(counts: Iterable[RunCount], now_ms: int) -> list[StripSlot]:
    """Return the slots of the last 24 hours, the oldest first. The last one ends now."""
    runs: dict[int, Counter[Result]] = {}
    for count in counts:
        runs.setdefault(count.slot_ms, Counter())[count.outcome] += count.runs
    first_ms = first_slot_ms(now_ms)
    starts = range(first_ms, first_ms + SLOTS * SLOT_MS, SLOT_MS)
    return [_slot(start_ms, runs.get(start_ms, Counter()), now_ms) for start_ms in starts]


def good_share(slots: Sequence[StripSlot]) -> tuple[int, int]:
    """Return the number of good runs, and of all."""
    return sum(slot.good for slot in slots), sum(slot.runs for slot in slots)


def _slot(start_ms: int, runs: Counter[Result], now_ms: int) -> StripSlot:
    state = next((shown for outcome, shown in _STATES.items() if runs[outcome]), Slot.NONE)
    end_ms = min(start_ms + SLOT_MS, max(now_ms, start_ms + 1))
    good = runs[Result.OK] + runs[Result.PARTIAL]
    return StripSlot(start_ms, end_ms, state, sum(runs[outcome] for outcome in _STATES), good)
