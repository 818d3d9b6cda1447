"""Rates as JSON, schema `poller.rates/1`: raw numbers per second, in the unit of the counter."""

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


def document(
    device: str, rates_of_targets: Sequence[TargetRates], span: bool, now_ms: int
) -> dict[str, Any]:
    """The response of the API; `poller readings --rate --json` has the same items."""
    items = []
    total = 0
    for rates in rates_of_targets:
        total += rates.result.total
        for line in rates.result.lines:
            items.append(item(rates.target.name, line, span, now_ms))

    return {
        "schema": SCHEMA,
        "as_of": formatting.instant(now_ms),
        "device": device,
        "items": items,
        "total": total,
    }


def item(target: str, line: Line, span: bool, now_ms: int) -> dict[str, Any]:
    """One counter and its newest rate; over a span also the mean, the maximum and all rates."""
    age_ms = max(0, now_ms - line.newest.at_ms)
    fields = {
        "target": target,
        "metric": line.series.name,
        "labels": dict(line.series.labels),
        **_rate(line.newest),
        "age_seconds": age_ms / 1000,
    }
    if span:
        fields["mean_per_second"] = line.mean()
        fields["max_per_second"] = line.highest()
        fields["rates"] = [_rate(rate) for rate in line.rates]
    return fields


def _rate(rate: Rate) -> dict[str, Any]:
    fields = {
        "per_second": rate.per_second,
        "verdict": rate.verdict.value,
        "reason": rate.reason,
        "seconds": rate.seconds,
        "at": _instant(rate.at_ms),
    }
    if rate.claimed is not None:
        fields["claimed_per_second"] = rate.claimed
    return fields


def _instant(ms: int) -> str:
    """RFC 3339 to the millisecond: two polls can be less than a second apart."""
    at = datetime.fromtimestamp(ms / 1000, UTC)
    text = at.isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")
