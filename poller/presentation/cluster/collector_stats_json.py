"""The figures of collectors as JSON, schema `poller.collectors.stats/1`. Fields may be added."""

from __future__ import annotations

import math

from pydantic import BaseModel, Field

from poller.db.record.slow_targets import SlowTarget
from poller.domain.metrics.poll_totals import EDGES_MS, Time
from poller.domain.record.collector_day import CollectorFigures

SCHEMA = "poller.collectors.stats/1"


class CollectorStats(BaseModel):
    """The users of a collector, and the results of its polls."""

    name: str
    devices: int = Field(description="Devices with a target of it, disabled ones too.")
    targets: int
    polls: int = Field(description="Polls that the device answered or not, refused ones left out.")
    answered: int = Field(description="Those of them that it answered, in full or in part.")
    success: float | None = Field(description="answered / polls; null without polls.")
    p50_seconds: float | None = Field(description="Of an attempt, estimated from buckets.")
    p95_seconds: float | None
    p99_seconds: float | None = Field(
        description=f"At most {EDGES_MS[-1] / 1000:g}, the upper edge of the last bucket."
    )
    codes: dict[str, int] = Field(description="Failed attempts by error code.")


class SlowTargetItem(BaseModel):
    """One of the slowest targets of a collector."""

    device: str
    target: str
    polls: int
    p50_seconds: float | None = Field(description="Null for the newest polls, which are few.")
    p95_seconds: float | None
    longest_seconds: float


def stats(name: str, figures: CollectorFigures) -> CollectorStats:
    """Return the figures of one collector."""
    totals, took = figures.totals, figures.totals.times[Time.DURATION]
    codes = {code: number for code, number in totals.codes.most_common() if number}
    return CollectorStats(
        name=name,
        devices=figures.devices,
        targets=figures.targets,
        polls=totals.polls,
        answered=totals.answered,
        success=totals.answered / totals.polls if totals.polls else None,
        p50_seconds=_seconds(took.quantile_ms(0.5)),
        p95_seconds=_seconds(took.quantile_ms(0.95)),
        p99_seconds=_seconds(took.quantile_ms(0.99)),
        codes=codes,
    )


def slow(of: SlowTarget) -> SlowTargetItem:
    """Return one of the slowest targets."""
    return SlowTargetItem(
        device=of.device,
        target=of.target,
        polls=of.polls,
        p50_seconds=_seconds(of.p50_ms),
        p95_seconds=_seconds(of.p95_ms),
        longest_seconds=of.max_ms / 1000,
    )


def _seconds(ms: float | None) -> float | None:
    if ms is None:
        return None
    return EDGES_MS[-1] / 1000 if ms == math.inf else round(ms / 1000, 4)
