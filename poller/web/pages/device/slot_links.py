"""The strip of the last 24 hours as links: each selects the attempts of its half hour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from poller.domain.fleet.day_slots import Slot
from poller.domain.record.slot_strip import StripSlot, good_share
from poller.presentation import formatting

_WORDS = {Slot.NONE: "no poll", Slot.OK: "good", Slot.PARTIAL: "partly", Slot.FAILED: "failed"}


@dataclass(frozen=True, slots=True)
class SlotLink:
    """A slot that can be selected. `text` says what it holds."""

    at_ms: int
    css: str
    text: str
    chosen: bool


@dataclass(frozen=True, slots=True)
class StripView:
    """The strip of a device with its legend."""

    slots: Sequence[SlotLink]
    start: str
    end: str
    good: str  # `97.10 % of 1,440 polls good`
    empty: int  # slots without a poll


def build_view(slots: Sequence[StripSlot], chosen_ms: int | None) -> StripView:
    """Return the view of a strip; `chosen_ms` is the start of the selected slot."""
    good, runs = good_share(slots)
    share = formatting.share(good, runs)
    counted = formatting.counted(runs, "poll")
    return StripView(
        slots=[_link(slot, slot.start_ms == chosen_ms) for slot in slots],
        start=formatting.instant(slots[0].start_ms),
        end=formatting.instant(slots[-1].end_ms),
        good=f"{share} of {counted} good" if runs else "no poll in 24 h",
        empty=sum(slot.state is Slot.NONE for slot in slots),
    )


def _link(slot: StripSlot, chosen: bool) -> SlotLink:
    start, end = (formatting.instant(at_ms)[11:16] for at_ms in (slot.start_ms, slot.end_ms))
    what = _WORDS[slot.state]
    if slot.runs:
        what += f", {slot.good} of {slot.runs} good"
    return SlotLink(slot.start_ms, slot.state.value, f"{start} to {end}: {what}", chosen)
