"""All newest values of a device as a list that can be searched, and each a link to its plot."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from poller.domain.metrics.reading import Kind
from poller.presentation import formatting
from poller.presentation.history import measure_texts, old_values
from poller.service.record import reading_listing
from poller.service.record.reading_listing import TargetPoll, Value

PER_PAGE = 100


@dataclass(frozen=True, slots=True)
class MetricItem:
    """One value. `plot` are the parameters of its plot; "" for an info, which has none."""

    metric: str
    labels: str
    value: str
    kind: str
    age: str
    is_old: bool
    target: str
    plot: str


@dataclass(frozen=True, slots=True)
class MetricList:
    """A page of values."""

    items: Sequence[MetricItem]
    total: int
    every: int  # without the search
    old: str  # what is said of values that are not of now, or ""


def build_view(polls: Sequence[TargetPoll], search: str, offset: int, now_ms: int) -> MetricList:
    """Return the values whose metric, label or target contains every word of the search."""
    words = search.casefold().split()
    every = list(reading_listing.values(polls))
    wanted = [value for value in every if _matches(value, words)]
    page = wanted[offset : offset + PER_PAGE]
    items = [_item(value, now_ms) for value in page]
    return MetricList(
        items, len(wanted), len(every), old_values.note(reading_listing.read_times(polls), now_ms)
    )


def plot_parameters(target: str, metric: str, labels: Iterable[tuple[str, str]]) -> str:
    """Return the parameters of the address of a series' plot."""
    pairs = [("target", target), ("metric", metric)]
    pairs += [("label", f"{name}={text}") for name, text in labels]
    return urlencode(pairs)


def _matches(value: Value, words: Sequence[str]) -> bool:
    if not words:
        return True
    texts = [value.series.name, value.target.name, *(text for _, text in value.series.labels)]
    searched = "\n".join(texts).casefold()
    return all(word in searched for word in words)


def _item(value: Value, now_ms: int) -> MetricItem:
    series = value.series
    has_plot = series.kind is not Kind.INFO
    return MetricItem(
        metric=series.name,
        labels=" ".join(f"{name}={text}" for name, text in series.labels),
        value=measure_texts.number(value.value) if value.value == value.value else "NaN",
        kind=series.kind.value,
        age=formatting.age(now_ms - value.at_ms),
        is_old=old_values.is_old(value.target, value.at_ms, now_ms),
        target=value.target.name,
        plot=plot_parameters(value.target.name, series.name, series.labels) if has_plot else "",
    )
