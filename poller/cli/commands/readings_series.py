"""`poller readings --since`: series over a range, from the form of history that suits it."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from poller import errors
from poller.cli.arguments.since import length_ms
from poller.cli.output import render, sparkline
from poller.cli.output.columns import Column, Fit, Item, column, plain
from poller.domain.record import instant_text
from poller.domain.series.series_plan import Range
from poller.presentation import counter_units, formatting

if TYPE_CHECKING:
    from poller.bootstrap import Services
    from poller.db.inventory.targets import Target
    from poller.service.history.series_listing import SeriesAnswer, TargetLine

_PLOT_WIDTH = 24
_LABELS_WIDTH = 32
_DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class RangeOptions:
    """The options of a range, as they were written."""

    since: str | None = None
    until: str | None = None
    step: str | None = None
    top: int | None = None
    as_csv: bool = False
    picture: Path | None = None
    labels: dict[str, str] = field(default_factory=dict)

    @property
    def are_given(self) -> bool:
        """Whether an option is there that only a range has."""
        others = (self.until, self.step, self.top, self.picture)
        return self.as_csv or bool(self.labels) or any(each is not None for each in others)

    def range(self, now_ms: int) -> Range:
        """Return the range, 24 hours unless the options say more. Raises InvalidInput."""
        end_ms = instant_text.parse_ms("--until", self.until, now_ms) if self.until else now_ms
        start_ms = end_ms - _DAY_MS
        if self.since:
            start_ms = instant_text.parse_ms("--since", self.since, now_ms)
        step_ms = length_ms("--step", self.step) if self.step else None
        return Range(start_ms, end_ms, step_ms)


@dataclass(frozen=True, slots=True)
class SeriesChoice:
    """The series that a command asks for."""

    metric: str
    rate: bool
    limit: int


def is_short(services: Services, chosen: Sequence[Target], options: RangeOptions) -> bool:
    """Whether every poll of the range can be shown. Raises InvalidInput."""
    from poller.service.history import series_listing

    now_ms = time.time_ns() // 1_000_000
    plan = series_listing.plan_of(services, chosen, options.range(now_ms), now_ms)
    return not plan.step_ms


def show(
    services: Services,
    device: str,
    chosen: Sequence[Target],
    choice: SeriesChoice,
    options: RangeOptions,
    as_json: bool,
) -> None:
    """Print the series of a range as a table, as JSON or as CSV; or draw them into a file."""
    from poller.service.history import series_listing
    from poller.service.history.series_listing import SeriesQuestion

    if as_json and options.as_csv:
        raise errors.InvalidInput("--json and --csv are two forms", hint="choose one of them")
    if options.picture is not None and options.picture.suffix.lower() != ".svg":
        raise errors.InvalidInput(
            f"--picture: {options.picture} is no .svg file",
            hint="name it FILE.svg; rsvg-convert and browsers make a PNG of it",
        )
    now_ms = time.time_ns() // 1_000_000
    question = SeriesQuestion(
        range=options.range(now_ms),
        metric=choice.metric,
        labels=options.labels,
        rate=choice.rate,
        top=options.top or 0,
        limit=min(choice.limit, series_listing.MOST_LINES),
    )
    answer = series_listing.series(services, chosen, question, now_ms)
    if options.picture is not None:
        _draw(device, answer, options.picture)
    elif options.as_csv:
        _print_csv(answer)
    else:
        _print_list(device, answer, as_json)
    for text in _notes(device, chosen, answer):
        render.note(text)


def _print_csv(answer: SeriesAnswer) -> None:
    from poller.presentation.history import series_csv, series_json

    items = (
        series_json.item(each.target.device, each.target.name, each.line) for each in answer.lines
    )
    for text in series_csv.lines(items):
        sys.stdout.write(text)


def _draw(device: str, answer: SeriesAnswer, file: Path) -> None:
    from poller.presentation.history import series_picture
    from poller.presentation.history.series_picture import MOST_LINES, NamedLine

    plan = answer.plan
    lines = []
    for each in answer.lines:
        words = " ".join(text for _, text in each.line.known_by)
        lines.append(NamedLine(f"{each.line.series.name} {words}".strip(), each.line))
    title = f"{device}: {plan.sentence()}"
    text = series_picture.svg(lines, title, plan.start_ms, plan.end_ms)
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        message = f"--picture: {file} cannot be written: {error.strerror}"
        raise errors.InvalidInput(message, hint="name a file in a directory that you own") from None
    drawn = min(len(lines), MOST_LINES)
    rest = f" of {len(lines)}; --top or --label choose others" if drawn < len(lines) else ""
    render.note(f"{file}: {formatting.counted(drawn, 'line')}{rest}")


class _Row(dict[str, Any]):
    """The fields of a line, and the line for its plot."""

    def __init__(self, fields: dict[str, Any], source: TargetLine) -> None:
        super().__init__(fields)
        self.source = source


def _print_list(device: str, answer: SeriesAnswer, as_json: bool) -> None:
    from poller.presentation.history import series_json

    if as_json:
        items = [
            series_json.item(each.target.device, each.target.name, each.line).model_dump()
            for each in answer.lines
        ]
        body = {"device": device, **series_json.head(answer.plan), "items": items}
        render.document(series_json.SCHEMA, {**body, "more": answer.more})
        return
    rows = [_Row(_fields(each), each) for each in answer.lines]
    render.listing(series_json.SCHEMA, rows, list(_columns()), as_json)


def _fields(each: TargetLine) -> dict[str, Any]:
    line = each.line
    return {
        "target": each.target.name,
        "metric": line.series.name,
        "labels": dict(line.series.labels),
        "kind": line.group.value,
        "mean": line.mean(),
        "min": line.lowest(),
        "max": line.highest(),
        "last": line.last(),
        "known": line.known_share(),
    }


def _columns() -> Iterator[Column]:
    yield column("TARGET", "target", fit=Fit.WHOLE, spare=3)
    yield column("METRIC", "metric", fit=Fit.WHOLE)
    yield Column("LABELS", _labels, short=_identifying_labels, minimum=_LABELS_WIDTH)
    yield _number("MEAN", "mean")
    yield _number("MIN", "min", spare=2)
    yield _number("MAX", "max")
    yield _number("LAST", "last", spare=1)
    yield Column("KNOWN", _known, right=True, fit=Fit.WHOLE)
    if render.can_draw():
        yield Column("PLOT", _plot, fit=Fit.WHOLE, spare=4)


def _number(title: str, key: str, spare: int = 0) -> Column:
    def text(item: Item) -> str:
        number = item[key]
        if number is None:
            return formatting.NOT_MEASURED
        if item["kind"] == "counter":
            return counter_units.per_second(item["metric"], number)
        return f"{number:.6g}"

    return Column(title, text, right=True, fit=Fit.WHOLE, spare=spare)


def _labels(item: Item) -> str:
    return plain(item["labels"])


def _identifying_labels(item: Item) -> str:
    return plain(dict(_source(item).line.known_by))


def _known(item: Item) -> str:
    return formatting.share(round(item["known"] * 10_000), 10_000)


def _plot(item: Item) -> str:
    points = _source(item).line.points
    return sparkline.draw([None if high != high else high for high in points.high], _PLOT_WIDTH)


def _source(item: Item) -> TargetLine:
    assert isinstance(item, _Row)
    return item.source


def _notes(device: str, chosen: Sequence[Target], answer: SeriesAnswer) -> Iterator[str]:
    """The sentences below the list: which history was read, and what is left out."""
    yield answer.plan.sentence()
    if not chosen:
        yield f"{device} has no targets: poller target add {device} --collector snmp"
    elif not answer.lines:
        yield "nothing matches, or nothing is stored of that time"
    if answer.more:
        yield f"only {len(answer.lines)} series: more with --limit, or fewer with --metric NAME"
