"""A row of values as small bars, from 0 to the highest. A missing value is a gap."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

_BARS = "▁▂▃▄▅▆▇█"
_GAP = "┄"


def draw(values: Sequence[float | None], width: int) -> str:
    """At most `width` bars. Values that share a bar show their highest, so no spike is lost."""
    columns = _columns(values, width)
    top = _highest(columns) or 0.0
    return "".join(_bar(value, top) for value in columns)


def _bar(value: float | None, top: float) -> str:
    """The bar of one value; the lowest bar for zero and below."""
    if value is None:
        return _GAP
    if top <= 0 or value <= 0:
        return _BARS[0]
    level = int(value / top * len(_BARS))
    return _BARS[min(level, len(_BARS) - 1)]


def _columns(values: Sequence[float | None], width: int) -> list[float | None]:
    """At most `width` values: the highest of each group that shares a bar."""
    if len(values) <= width:
        return list(values)
    cuts = [round(at * len(values) / width) for at in range(width + 1)]
    return [_highest(values[start:end]) for start, end in itertools.pairwise(cuts)]


def _highest(values: Sequence[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)
