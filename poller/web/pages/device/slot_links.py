"""The strip of the last 24 hours: a link for each slot, and a small picture for a table row."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from poller.domain.record.slot_strip import SlotState, StripSlot, good_share
from poller.presentation import formatting

#: Height of the bar of each state in the small picture, of 16.
_HEIGHTS = {
    SlotState.FAILED: 16,
    SlotState.REFUSED: 16,
    SlotState.PARTIAL: 11,
    SlotState.OK: 6,
    SlotState.NONE: 2,
}
_CSS = {SlotState.NONE: "none"}


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
        slots=[_link(slot, chosen_ms) for slot in slots],
        start=formatting.instant(slots[0].start_ms),
        end=formatting.instant(slots[-1].end_ms),
        good=f"{share} of {counted} good" if runs else "no poll in 24 h",
        empty=sum(slot.state is SlotState.NONE for slot in slots),
    )


def picture(slots: Sequence[StripSlot]) -> str:
    """Return the strip as a small picture: neighbouring slots of one state are one bar."""
    good, runs = good_share(slots)
    label = f"last 24 hours: {formatting.share(good, runs)} of polls good" if runs else "no poll"
    bars = "".join(_bars(slots))
    return (
        f'<svg class="strip" viewBox="0 0 {len(slots)} 16" preserveAspectRatio="none" '
        f'role="img" aria-label="{html.escape(label)}">{bars}</svg>'
    )


def _link(slot: StripSlot, chosen_ms: int | None) -> SlotLink:
    start, end = (formatting.instant(at_ms)[11:16] for at_ms in (slot.start_ms, slot.end_ms))
    what = slot.state.value
    if slot.runs:
        what += f", {slot.good} of {slot.runs} good"
    return SlotLink(slot.start_ms, _css(slot), f"{start} to {end}: {what}",
                    slot.start_ms == chosen_ms)  # fmt: skip


def _bars(slots: Sequence[StripSlot]) -> Iterator[str]:
    x = 0
    for state, same in groupby(slots, key=lambda slot: slot.state):
        width = len(list(same))
        height = _HEIGHTS[state]
        css = _CSS.get(state, state.value)
        yield f'<rect class="{css}" x="{x}" y="{16 - height}" width="{width}" height="{height}"/>'
        x += width


def _css(slot: StripSlot) -> str:
    return _CSS.get(slot.state, slot.state.value)
