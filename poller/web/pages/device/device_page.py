"""The page of a device: the state of its targets, and the rates of its counters, 50 to a page."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from poller.db.record.stored_rates import RatesRequest, TargetRates
from poller.domain.metrics.counters import GAP_INTERVALS, Rate, Verdict
from poller.domain.metrics.rates import Line
from poller.domain.record.overview import Overview
from poller.presentation import counter_units, formatting
from poller.presentation.device_state import DeviceState
from poller.presentation.health import GLYPHS, Tone
from poller.web.pages import plot
from poller.web.pages.device import device_targets
from poller.web.pages.device.device_targets import TargetsView

PER_PAGE = 50
#: Slices of a picture in a table row.
_SLICES = 120
_HOUR_MS = 3_600_000
_TONES = {Verdict.RESET: Tone.LATE, Verdict.GAP: Tone.LATE, Verdict.IMPLAUSIBLE: Tone.FAILING}


class Span(enum.StrEnum):
    """The time before now that a page covers."""

    HOUR = "1h"
    SIX_HOURS = "6h"
    DAY = "24h"

    @property
    def ms(self) -> int:
        return int(self.value.removesuffix("h")) * _HOUR_MS


@dataclass(frozen=True, slots=True)
class RatesQuery:
    """The parameters of the page address. An empty `metric` selects octets, if there are any."""

    metric: str = ""
    span: Span = Span.HOUR
    page: int = 1

    def request(self, now_ms: int) -> RatesRequest:
        """The request for the rates of this page, and one more: then there is a next page."""
        return RatesRequest(
            select=self.select,
            limit=PER_PAGE + 1,
            since_ms=now_ms - self.span.ms,
            offset=(self.page - 1) * PER_PAGE,
        )

    def select(self, names: Collection[str]) -> Collection[str]:
        """The selected ones of some counters."""
        if self.metric:
            return [self.metric]
        return counter_units.traffic(names)

    def url(self, **changes: object) -> str:
        """The address of this page with some parameters changed; empty parameters are left out."""
        parameters: dict[str, object] = {
            "metric": self.metric,
            "since": self.span,
            "page": self.page,
        }
        parameters.update(changes)
        given = {key: str(value) for key, value in parameters.items() if value}
        return f"?{urlencode(given)}"


@dataclass(frozen=True, slots=True)
class DeviceData:
    """A device as it was read. `overview` is read only when a target is late."""

    name: str
    rates: Sequence[TargetRates]  # one per target
    state: DeviceState
    overview: Overview | None = None

    def lines(self) -> Iterator[tuple[TargetRates, Line]]:
        """Each counter with a rate, and the target it belongs to."""
        for rates in self.rates:
            for line in rates.result.lines:
                yield rates, line


@dataclass(frozen=True, slots=True)
class Choice:
    """A link that changes one parameter of the page."""

    title: str
    url: str
    chosen: bool


@dataclass(frozen=True, slots=True)
class RateRow:
    target: str
    name: str
    metric: str
    rate: str
    mean: str
    highest: str
    verdict: str
    tone: str
    before: str  # resets and gaps before the newest rate
    age: str
    picture: str


@dataclass(frozen=True, slots=True)
class EmptyReason:
    """Why a page has no rates, and the command to type next."""

    text: str = ""
    command: str = ""


@dataclass(frozen=True, slots=True)
class DeviceView:
    device: str
    state: DeviceState
    targets: TargetsView
    as_of: str
    query: RatesQuery
    metrics: Sequence[Choice]
    spans: Sequence[Choice]
    rows: Sequence[RateRow]
    names_targets: bool  # several targets have counters, so each row names its target
    empty: EmptyReason
    previous: str  # address of the previous page, or ""
    following: str  # address of the next page, or ""


def build_view(device: DeviceData, query: RatesQuery, now_ms: int) -> DeviceView:
    """Build the view of a device page."""
    lines = list(device.lines())
    rows = []
    for rates, line in lines[:PER_PAGE]:
        rows.append(_row(rates, line, query.span, now_ms))

    targets = [rates.target for rates in device.rates]
    targets_with_counters = [rates.target for rates in device.rates if rates.names]
    has_previous = query.page > 1
    has_next = len(lines) > PER_PAGE

    return DeviceView(
        device=device.name,
        state=device.state,
        targets=device_targets.build_view(device.name, targets, device.state, device.overview),
        as_of=formatting.instant(now_ms),
        query=query,
        metrics=_metric_choices(device, query),
        spans=_span_choices(query),
        rows=rows,
        names_targets=len(targets_with_counters) > 1,
        empty=EmptyReason() if rows else _empty_reason(device),
        previous=query.url(page=query.page - 1) if has_previous else "",
        following=query.url(page=query.page + 1) if has_next else "",
    )


def _metric_choices(device: DeviceData, query: RatesQuery) -> list[Choice]:
    names: dict[str, None] = {"": None}
    for rates in device.rates:
        names.update(dict.fromkeys(rates.names))

    choices = []
    for name in names:
        url = query.url(metric=name, page=0)
        choices.append(Choice(name or "traffic", url, name == query.metric))
    return choices


def _span_choices(query: RatesQuery) -> list[Choice]:
    choices = []
    for span in Span:
        url = query.url(since=span, page=0)
        choices.append(Choice(span, url, span is query.span))
    return choices


def _empty_reason(device: DeviceData) -> EmptyReason:
    if not device.rates:
        command = f"poller target add {device.name} --collector snmp"
        return EmptyReason("This device has no target.", command)

    runs_command = f"poller runs {device.name}"
    if not any(rates.polls for rates in device.rates):
        return EmptyReason(_unread_reason(device.state), runs_command)
    if any(rates.names for rates in device.rates):
        return EmptyReason("No counter was read in this time.", runs_command)

    text = "This device has no counters. Its other values:"
    return EmptyReason(text, f"poller readings {device.name}")


def _unread_reason(state: DeviceState) -> str:
    """Why nothing was read: not polled yet, or polled without an answer."""
    polled = [target for target in state.on_board.values() if target.status.run_ms]
    has_answered = any(target.status.ok_ms for target in polled)
    if not polled or has_answered:
        return "Nothing has been read yet."

    since_ms = min(target.status.since_ms for target in polled)
    since = formatting.instant(since_ms)
    newest = max(polled, key=lambda target: target.status.finished_ms)
    age = formatting.age(state.now_ms - newest.status.finished_ms)
    error = device_targets.error_text(newest)
    return (
        f"Polled since {since[:10]} {since[11:19]} UTC without a good answer. "
        f"The last error, {age} ago: {error}."
    )


def _row(rates: TargetRates, line: Line, span: Span, now_ms: int) -> RateRow:
    metric = line.series.name
    newest = line.newest
    labels = [text for _, text in line.known_by]
    return RateRow(
        target=rates.target.name,
        name=" ".join(labels),
        metric=metric,
        rate=counter_units.per_second(metric, newest.per_second),
        mean=counter_units.per_second(metric, line.mean()),
        highest=counter_units.per_second(metric, line.highest()),
        verdict=_verdict(newest),
        tone=str(_TONES.get(newest.verdict, "")),
        before=_earlier_verdicts(line.rates[:-1]),
        age=formatting.age(now_ms - newest.at_ms),
        picture=_picture(rates, line, span, now_ms),
    )


def _verdict(rate: Rate) -> str:
    """`ok`, or a bad verdict with its mark and reason: `▲ reset: the device restarted`."""
    tone = _TONES.get(rate.verdict)
    if tone is None:
        return rate.verdict.value
    return f"{GLYPHS[tone]} {rate.verdict.value}: {rate.reason}"


def _earlier_verdicts(rates: Sequence[Rate]) -> str:
    """The bad verdicts of older rates: `before: 1 reset, 2 gap`; empty without any."""
    times = Counter(rate.verdict for rate in rates if rate.verdict in _TONES)
    if not times:
        return ""

    counts = []
    for verdict, number in sorted(times.items()):
        counts.append(f"{formatting.exact(number)} {verdict}")
    return f"before: {', '.join(counts)}"


def _picture(rates: TargetRates, line: Line, span: Span, now_ms: int) -> str:
    """The highest rate of each slice, so that no spike is lost; a hole where no rate is known."""
    interval_ms = rates.target.max_ms or rates.target.interval_ms
    longest_ms = round(GAP_INTERVALS * interval_ms)
    slice_ms = max(1000, span.ms // _SLICES)
    window = plot.window_until(now_ms + slice_ms, span.ms, slice_ms)

    slices = _slices(line.rates, slice_ms, longest_ms)
    samples = [plot.Sample(at_ms, value) for at_ms, value in slices.items()]
    holes = plot.gaps(samples, window, longest_ms)

    resets = []
    for rate in line.rates:
        if rate.verdict is Verdict.RESET and rate.at_ms >= window.start_ms:
            resets.append(rate.at_ms)

    sentence = _sentence(line, span, len(resets))
    rate_line = plot.Line("rate", samples, filled=True)
    return plot.small(rate_line, window, sentence, holes, resets)


def _slices(rates: Sequence[Rate], slice_ms: int, longest_ms: int) -> dict[int, float]:
    """The highest rate of each slice. A rate holds since the poll before; the average over a gap
    is left out.
    """
    highest: dict[int, float] = {}
    for rate in rates:
        took_ms = round(rate.seconds * 1000)
        if rate.per_second is None or took_ms > longest_ms:
            continue

        start_ms = rate.at_ms - took_ms
        first_slice_ms = start_ms - start_ms % slice_ms
        for at_ms in range(first_slice_ms, rate.at_ms, slice_ms):
            highest[at_ms] = max(rate.per_second, highest.get(at_ms, 0.0))
    return highest


def _sentence(line: Line, span: Span, resets: int) -> str:
    """The picture in words, for screen readers."""
    metric = line.series.name
    highest = line.highest()
    if highest is None:
        return f"{metric} over the last {span}: no rate is known."

    highest_text = counter_units.per_second(metric, highest)
    newest_text = counter_units.per_second(metric, line.newest.per_second)
    text = f"{metric} over the last {span}: up to {highest_text}, latest {newest_text}."
    if resets:
        text += f" {formatting.counted(resets, 'reset')}."
    return text
