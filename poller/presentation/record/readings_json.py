"""A reading as JSON, schema `poller.readings/1`. Fields may be added, never changed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

from poller.domain.metrics.reading import Kind, Series
from poller.presentation.record import instants
from poller.presentation.record.instants import Instant

if TYPE_CHECKING:
    from poller.db.inventory.targets import Target

SCHEMA = "poller.readings/1"


class ReadingItem(BaseModel):
    """One value of a poll."""

    target: str
    metric: str
    labels: dict[str, str]
    value: float | None = Field(description="Null for NaN and infinity, which JSON has not.")
    kind: Kind
    width_bits: int | None = Field(description="Of a counter, if it is known.")
    at: Instant | None
    age_seconds: float


def item(target: Target, at_ms: int, series: Series, value: float, now_ms: int) -> ReadingItem:
    """Return the fields of one value."""
    return ReadingItem(
        target=target.name,
        metric=series.name,
        labels=dict(series.labels),
        value=value if math.isfinite(value) else None,
        kind=series.kind,
        width_bits=series.width or None,
        at=instants.of_ms(at_ms),
        age_seconds=max(0, now_ms - at_ms) / 1000,
    )
