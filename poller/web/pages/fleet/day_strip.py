"""The strip of a day as SVG: 48 slots of half an hour, the height of a slot repeats its colour.

Equal slots that follow each other are one shape, so a row costs few elements. A slot without a poll
is a dotted line, never the state of its neighbour.
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Sequence

from poller.domain.fleet import day_slots
from poller.domain.fleet.day_slots import Slot

HEIGHT = 16
WIDTH = 4  # of a slot
_HEIGHTS = {Slot.OK: 6, Slot.PARTIAL: 11, Slot.FAILED: 16}
_WORDS = {
    Slot.FAILED: "with failed polls",
    Slot.PARTIAL: "with partial polls",
    Slot.OK: "good",
    Slot.NONE: "without a poll",
}


def svg(slots: Sequence[Slot]) -> str:
    """Return the picture of a strip, oldest slot first."""
    label = html.escape(sentence(slots))
    shapes = [_shape(*stretch) for stretch in day_slots.stretches(slots)]
    return (
        f'<svg class="strip" viewBox="0 0 {WIDTH * len(slots)} {HEIGHT}" role="img" '
        f'preserveAspectRatio="none" aria-label="{label}">{"".join(shapes)}</svg>'
    )


def sentence(slots: Sequence[Slot]) -> str:
    """Return the strip in words: `Last 24 hours, of 48 half hours: 40 good, 8 without a poll.`"""
    numbers = Counter(slots)
    parts = [f"{numbers[slot]} {word}" for slot, word in _WORDS.items() if numbers[slot]]
    return f"Last 24 hours, of {len(slots)} half hours: {', '.join(parts)}."


def _shape(slot: Slot, place: int, length: int) -> str:
    x, width = place * WIDTH, length * WIDTH
    if slot is Slot.NONE:
        return f'<path class="none" d="M{x} {HEIGHT - 1}h{width}"/>'
    height = _HEIGHTS[slot]
    top = HEIGHT - height
    return f'<rect class="{slot.value}" x="{x}" y="{top}" width="{width}" height="{height}"/>'
