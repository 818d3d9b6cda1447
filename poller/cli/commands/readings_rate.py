"""`poller readings --rate`: what counters count per second, what each rate is worth, and how it went."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from poller.cli.output import render, sparkline
from poller.cli.output.columns import Column, Fit, Item, column, plain
from poller.domain.inventory import duration
from poller.domain.metrics.counters import Verdict
from poller.presentation import counter_units, formatting, rates_json

if TYPE_CHECKING:
    from sqlalchemy.engine import Engine

    from poller.db.inventory.targets import Target
    from poller.db.record.stored_rates import Asked, Rated
    from poller.domain.metrics.rates import Line

_PLOT_WIDTH, _SMALL_PLOT_WIDTH = 24, 12
_WIDE_SCREEN = 130
_LABELS_WIDTH = 32  # ifName=GigabitEthernet1/0/24 and a little: cut to ifName=… a row is nobody's


def show(
    engine: Engine, device: str, chosen: Sequence[Target], asked: Asked, as_json: bool
) -> None:
    """Print the newest rate of every counter; over a span also the mean, the highest and all of them (JSON)."""
    from poller.db.record import stored_rates as stored

    rated = stored.of_targets(engine, chosen, asked)
    now_ms, span = time.time_ns() // 1_000_000, bool(asked.since_ms)
    rows = [
        _Row(rates_json.item(each.target.name, line, span, now_ms), line)
        for each in rated
        for line in each.answer.lines
    ]
    total = sum(each.answer.total for each in rated)
    render.listing(
        rates_json.SCHEMA, rows, list(_columns(span)), as_json, device=device, total=total
    )
    if not as_json:
        for text in _notes(device, rated, len(rows), total):
            render.note(text)


class _Row(dict[str, Any]):
    """What goes into JSON, and the line it was made of, for the eye."""

    def __init__(self, fields: dict[str, Any], line: Line) -> None:
        super().__init__(fields)
        self.line = line


def _columns(span: bool) -> Iterator[Column]:
    """On a screen things are called by what they are known by, and there is a picture; a pipe gets all labels."""
    yield column("TARGET", "target", fit=Fit.WHOLE, spare=3)
    yield column("METRIC", "metric", fit=Fit.WHOLE)
    yield Column(
        "LABELS",
        lambda item: plain(item["labels"]),
        short=lambda item: plain(dict(_line(item).known_by)),
        least=_LABELS_WIDTH,
    )
    yield _number("RATE", "per_second")
    if span:
        yield _number("MEAN", "mean_per_second", spare=2)
        yield _number("MAX", "max_per_second", spare=1)
    yield column("VERDICT", "verdict", fit=Fit.WHOLE)
    if _can_draw():
        yield Column("PLOT", _plot, fit=Fit.WHOLE, spare=5)
    yield Column(
        "AGE",
        lambda item: duration.format_ms(round(item["age_seconds"]) * 1000),
        right=True,
        fit=Fit.WHOLE,
        spare=4,
    )
    yield column("WHY", "reason", fit=Fit.REST)


def _number(title: str, key: str, spare: int = 0) -> Column:
    def text(item: Item) -> str:
        return counter_units.per_second(item["metric"], item[key])

    return Column(title, text, right=True, fit=Fit.WHOLE, spare=spare)


def _plot(item: Item) -> str:
    wide = shutil.get_terminal_size().columns >= _WIDE_SCREEN
    return sparkline.draw(
        [rate.per_second for rate in _line(item).rates], _PLOT_WIDTH if wide else _SMALL_PLOT_WIDTH
    )


def _line(item: Item) -> Line:
    assert isinstance(item, _Row)
    return item.line


def _can_draw() -> bool:
    encoding = (getattr(sys.stdout, "encoding", "") or "").lower()
    return sys.stdout.isatty() and encoding.startswith("utf") and not render.accessible()


def _notes(device: str, rated: Sequence[Rated], shown: int, total: int) -> Iterator[str]:
    if not rated:
        yield f"{device} has no targets: poller target add {device} --collector snmp"
    elif not any(each.polls for each in rated):
        yield "nothing has been read yet, or not in that time"
    elif not shown:
        yield "no counter matches" if total == 0 else "no rate in that time"
    if shown < total:
        yield f"{total:,} counters in all; more with --limit {total} or --metric NAME"
    for target in (each.target for each in rated if _only_first(each)):
        wait = duration.format_ms(target.max_ms or target.interval_ms)
        yield f"{device}/{target.name} has one poll, and a rate takes two: the next one is due within {wait}"
    for each in (each for each in rated if each.cut):
        yield f"{device}/{each.target.name}: only the newest {formatting.exact(each.polls)} polls of that time"


def _only_first(rated: Rated) -> bool:
    verdicts: Iterable[Verdict] = (line.newest.verdict for line in rated.answer.lines)
    return rated.polls == 1 and Verdict.FIRST in verdicts
