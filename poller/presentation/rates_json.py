"""Rates as JSON, schema `poller.rates/1`: raw numbers per second, in the counter's own unit."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from poller.domain.metrics.counters import Rate
from poller.domain.metrics.rates import Line
from poller.presentation import formatting

if TYPE_CHECKING:
    from poller.db.record.stored_rates import TargetRates

SCHEMA = "poller.rates/1"


def document(device: str, rated: Sequence[TargetRates], span: bool, now_ms: int) -> dict[str, Any]:
    """The answer of the API; the command line says the same."""
    items = [
        item(each.target.name, line, span, now_ms) for each in rated for line in each.result.lines
    ]
    total = sum(each.result.total for each in rated)
    return {
        "schema": SCHEMA,
        "as_of": formatting.instant(now_ms),
        "device": device,
        "items": items,
        "total": total,
    }


def item(target: str, line: Line, span: bool, now_ms: int) -> dict[str, Any]:
    """One counter: its newest rate; over a span also mean, highest and all of them."""
    fields = {
        "target": target,
        "metric": line.series.name,
        "labels": dict(line.series.labels),
        **_rate(line.newest),
        "age_seconds": max(0.0, (now_ms - line.newest.at_ms) / 1000),
    }
    if span:
        fields |= {"mean_per_second": line.mean(), "max_per_second": line.highest()}
        fields["rates"] = [_rate(each) for each in line.rates]
    return fields


def _rate(rate: Rate) -> dict[str, Any]:
    fields = {
        "per_second": rate.per_second,
        "verdict": rate.verdict.value,
        "reason": rate.reason,
        "seconds": rate.seconds,
        "at": _instant(rate.at_ms),
    }
    return fields if rate.claimed is None else {**fields, "claimed_per_second": rate.claimed}


def _instant(ms: int) -> str:
    """To the millisecond: two polls may be closer than a second."""
    return (
        datetime.fromtimestamp(ms / 1000, UTC)
        .isoformat(timespec="milliseconds")
        .replace("+00:00", "Z")
    )
