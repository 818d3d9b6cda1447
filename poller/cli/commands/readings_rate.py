"""`poller readings --rate`: the rate of each counter, its verdict, and a plot."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from poller.cli.output import render, sparkline
from poller.cli.output.columns import Column, Fit, Item, column, plain
from poller.domain.inventory import duration
from poller.domain.metrics.counters import Verdict
from poller.presentation import counter_units, formatting, rates_json

if TYPE_CHECKING:
    from poller.db.record.stored_rates import TargetRates
    from poller.domain.metrics.rates import Line

_PLOT_WIDTH = 24
_SMALL_PLOT_WIDTH = 12
_WIDE_SCREEN = 130
#: Room for `ifName=GigabitEthernet1/0/24`: a row cut to `ifName=…` cannot be identified.
_LABELS_WIDTH = 32


class _Row(dict[str, Any]):
    """The JSON fields of a counter, with the line they were made of for labels and plot."""

    def __init__(self, fields: dict[str, Any], line: Line) -> None:
        super().__init__(fields)
        self.line = line


def show(device: str, rated: Sequence[TargetRates], span: bool, as_json: bool) -> None:
    """Print the newest rate of every counter; over a span also its mean and maximum."""
    now_ms = time.time_ns() // 1_000_000

    rows = []
    for each in rated:
        for line in each.result.lines:
            fields = rates_json.item(each.target.name, line, span, now_ms)
            rows.append(_Row(fields, line))

    total = sum(each.result.total for each in rated)
    columns = list(_columns(span))
    render.listing(rates_json.SCHEMA, rows, columns, as_json, device=device, total=total)

    if not as_json:
        for text in _notes(device, rated, len(rows), total):
            render.note(text)


def _columns(span: bool) -> Iterator[Column]:
    """The columns of the list; mean and maximum only over a span, the plot only on a screen."""
    yield column("TARGET", "target", fit=Fit.WHOLE, spare=3)
    yield column("METRIC", "metric", fit=Fit.WHOLE)
    yield Column("LABELS", _labels, short=_identifying_labels, minimum=_LABELS_WIDTH)
    yield _rate_column("RATE", "per_second")

    if span:
        yield _rate_column("MEAN", "mean_per_second", spare=2)
        yield _rate_column("MAX", "max_per_second", spare=1)

    yield column("VERDICT", "verdict", fit=Fit.WHOLE)
    if render.can_draw():
        yield Column("PLOT", _plot, fit=Fit.WHOLE, spare=5)

    yield Column("AGE", age_text, right=True, fit=Fit.WHOLE, spare=4)
    yield column("WHY", "reason", fit=Fit.REST)


def _rate_column(title: str, key: str, spare: int = 0) -> Column:
    def text(item: Item) -> str:
        return counter_units.per_second(item["metric"], item[key])

    return Column(title, text, right=True, fit=Fit.WHOLE, spare=spare)


def age_text(item: Item) -> str:
    """The age of a value in whole seconds: `1m30s`."""
    return duration.format_ms(round(item["age_seconds"]) * 1000)


def _labels(item: Item) -> str:
    return plain(item["labels"])


def _identifying_labels(item: Item) -> str:
    """The labels that people know the series by, for a screen."""
    return plain(dict(_line(item).known_by))


def _plot(item: Item) -> str:
    """The rates of the time before as a row of bars."""
    is_wide = shutil.get_terminal_size().columns >= _WIDE_SCREEN
    width = _PLOT_WIDTH if is_wide else _SMALL_PLOT_WIDTH
    return sparkline.draw([rate.per_second for rate in _line(item).rates], width)


def _line(item: Item) -> Line:
    assert isinstance(item, _Row)
    return item.line


def _notes(device: str, rated: Sequence[TargetRates], shown: int, total: int) -> Iterator[str]:
    """The sentences below the list: why it is empty, or what it leaves out."""
    if not rated:
        yield f"{device} has no targets: poller target add {device} --collector snmp"
    elif not any(each.polls for each in rated):
        yield "nothing has been read yet, or not in that time"
    elif not shown:
        yield "no counter matches" if total == 0 else "no rate in that time"

    if shown < total:
        yield f"{total:,} counters in all; more with --limit {total} or --metric NAME"

    for each in rated:
        if _has_one_poll(each):
            wait = duration.format_ms(each.target.max_ms or each.target.interval_ms)
            yield (
                f"{device}/{each.target.name} has one poll, and a rate takes two: "
                f"the next one is due within {wait}"
            )

    for each in rated:
        if each.cut:
            polls = formatting.exact(each.polls)
            yield f"{device}/{each.target.name}: only the newest {polls} polls of that time"


def _has_one_poll(rated: TargetRates) -> bool:
    """True if the target has no rate yet because it was polled only once."""
    if rated.polls != 1:
        return False
    return any(line.newest.verdict is Verdict.FIRST for line in rated.result.lines)
