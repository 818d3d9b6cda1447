"""The strip of a target or device: a fixed number of slots of time up to now, each with its worst
state. A slot without a poll has no state: it is never drawn as a good one.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from poller.domain.failures.outcome import Result

DAY_MS = 86_400_000
SLOTS = 48
SLOT_MS = DAY_MS // SLOTS


class SlotState(enum.StrEnum):
    """The state of a slot, worst first."""

    FAILED = "failed"
    REFUSED = "refused"  # not attempted
    PARTIAL = "partial"
    OK = "ok"
    NONE = "no poll"


class SlotCount(NamedTuple):
    """Runs of one outcome whose plan time lies in one slot."""

    slot_ms: int
    outcome: Result
    runs: int


@dataclass(frozen=True, slots=True)
class StripSlot:
    """One slot: [start, end), its worst state, and its runs."""

    start_ms: int
    end_ms: int
    state: SlotState
    runs: int = 0
    good: int = 0


_STATES = {
    Result.FAILED: SlotState.FAILED,
    Result.REFUSED: SlotState.REFUSED,
    Result.PARTIAL: SlotState.PARTIAL,
    Result.OK: SlotState.OK,
}
_ORDER = list(SlotState)


def first_slot_ms(now_ms: int) -> int:
    """Return the start of the strip that ends with the slot of this instant."""
    return slot_of(now_ms) - (SLOTS - 1) * SLOT_MS


def slot_of(at_ms: int) -> int:
    """Return the start of the slot of an instant."""
    return at_ms // SLOT_MS * SLOT_MS


def strip(counts: Iterable[SlotCount], now_ms: int) -> list[StripSlot]:
    """Return the slots of the last 24 hours, the oldest first. The last one ends now."""
    runs: dict[int, Counter[Result]] = {}
    for count in counts:
        runs.setdefault(count.slot_ms, Counter())[count.outcome] += count.runs
    first_ms = first_slot_ms(now_ms)
    starts = range(first_ms, first_ms + DAY_MS, SLOT_MS)
    return [_slot(start_ms, runs.get(start_ms, Counter()), now_ms) for start_ms in starts]


def good_share(slots: Sequence[StripSlot]) -> tuple[int, int]:
    """Return the number of good runs, and of all."""
    return sum(slot.good for slot in slots), sum(slot.runs for slot in slots)


def _slot(start_ms: int, runs: Counter[Result], now_ms: int) -> StripSlot:
    found = [_STATES[outcome] for outcome in runs if outcome in _STATES]
    state = min(found, key=_ORDER.index, default=SlotState.NONE)
    known = sum(number for outcome, number in runs.items() if outcome in _STATES)
    end_ms = min(start_ms + SLOT_MS, max(now_ms, start_ms + 1))
    good = runs[Result.OK] + runs[Result.PARTIAL]
    return StripSlot(start_ms, end_ms, state, known, good)
