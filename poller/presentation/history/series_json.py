"""Series of a range as JSON, schema `poller.series/1`: every line as columns of equal length."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field

from poller.presentation import formatting

if TYPE_CHECKING:
    from poller.domain.series.series_line import Points, SeriesLine
    from poller.domain.series.series_plan import SeriesPlan

SCHEMA = "poller.series/1"


class LinePoints(BaseModel):
    """The points of a line as columns."""

    at: list[str] = Field(description="RFC 3339: the poll, or the start of the bucket.")
    value: list[float | None] = Field(
        description="The mean by time: of a counter growth a second, of a state the longest one."
    )
    min: list[float | None]
    max: list[float | None]
    known: list[float] = Field(description="The known share of the bucket's time, 0 to 1.")
    verdict: list[str] = Field(description="ok, wrap, gap, reset, implausible or unknown.")


class SeriesItem(BaseModel):
    """One series of a target over the range."""

    device: str
    target: str
    metric: str
    labels: dict[str, str]
    kind: str = Field(description="counter, gauge or state.")
    mean: float | None = Field(description="By time, over the whole range; null for a state.")
    min: float | None
    max: float | None
    last: float | None
    total: float | None = Field(description="Growth of a counter; else null.")
    known_share: float = Field(description="The known share of the range, 0 to 1.")
    points: LinePoints


def head(plan: SeriesPlan) -> dict[str, Any]:
    """Return the fields that say how the range was read."""
    return {
        "resolution": plan.resolution.value,
        "why": plan.sentence(),
        "step_seconds": plan.step_ms / 1000 if plan.step_ms else None,
        "since": formatting.instant(plan.start_ms),
        "until": formatting.instant(plan.end_ms),
    }


def item(device: str, target: str, line: SeriesLine) -> SeriesItem:
    """Return one line with its points."""
    return SeriesItem(
        device=device,
        target=target,
        metric=line.series.name,
        labels=dict(line.series.labels),
        kind=line.group.value,
        mean=line.mean(),
        min=line.lowest(),
        max=line.highest(),
        last=line.last(),
        total=line.total(),
        known_share=round(line.known_share(), 6),
        points=_points(line.points),
    )


def _points(points: Points) -> LinePoints:
    return LinePoints(
        at=[instant(at_ms) for at_ms in points.at_ms.tolist()],
        value=_numbers(points.value.tolist()),
        min=_numbers(points.low.tolist()),
        max=_numbers(points.high.tolist()),
        known=[round(share, 6) for share in points.known_share.tolist()],
        verdict=[verdict.value for verdict in points.verdicts],
    )


def _numbers(values: Iterable[float]) -> list[float | None]:
    return [value if math.isfinite(value) else None for value in values]


def instant(at_ms: int) -> str:
    """RFC 3339 in UTC; with milliseconds where there are any."""
    text = formatting.instant(at_ms)
    rest = at_ms % 1000
    return f"{text[:-1]}.{rest:03d}Z" if rest else text
