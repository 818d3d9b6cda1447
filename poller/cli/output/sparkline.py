"""A row of values as a row of small bars, from 0 to the highest. What has no value is a hole, not a zero."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

_BARS = "▁▂▃▄▅▆▇█"
_HOLE = "┄"


def draw(values: Sequence[float | None], width: int) -> str:
    """At most `width` characters; of values that share one, the highest is shown, so that no spike is lost."""
    columns = _columns(values, width)
    top = max((value for value in columns if value is not None), default=0.0)
    return "".join(_HOLE if value is None else _bar(value, top) for value in columns)


def _bar(value: float, top: float) -> str:
    return (
        _BARS[min(len(_BARS) - 1, int(value / top * len(_BARS)))]
        if top > 0 and value > 0
        else _BARS[0]
    )


def _columns(values: Sequence[float | None], width: int) -> list[float | None]:
    if len(values) <= width:
        return list(values)
    cuts = [round(at * len(values) / width) for at in range(width + 1)]
    return [_highest(values[start:end]) for start, end in itertools.pairwise(cuts)]


def _highest(values: Sequence[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)
