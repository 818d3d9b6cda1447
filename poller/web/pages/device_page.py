"""A device as the texts and pictures of its page: how its targets stand, and the rates of some counters over some time,
a page of rows at a time."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from poller.db.record.stored_rates import RatesRequest, TargetRates
from poller.domain.metrics.counters import GAP_INTERVALS, Rate, Verdict
from poller.domain.metrics.rates import Line
from poller.domain.record.overview import Overview
from poller.presentation import counter_units, formatting
from poller.presentation.device_state import Standing
from poller.presentation.health import GLYPHS, Tone
from poller.web.pages import device_targets, plot
from poller.web.pages.device_targets import TargetsView

PER_PAGE = 50
#: As many as can be told apart in a picture of that size.
_SLICES = 120
_HOUR_MS = 3_600_000
_TONES = {Verdict.RESET: Tone.LATE, Verdict.GAP: Tone.LATE, Verdict.IMPLAUSIBLE: Tone.FAILING}


class Span(enum.StrEnum):
    """How far back a page looks."""

    HOUR = "1h"
    SIX_HOURS = "6h"
    DAY = "24h"

    @property
    def ms(self) -> int:
        return int(self.value.removesuffix("h")) * _HOUR_MS


@dataclass(frozen=True, slots=True)
class Asking:
    """What the address of the page says: which counter (empty: octets, if there are any), since when, which page."""

    metric: str = ""
    span: Span = Span.HOUR
    page: int = 1

    def asked(self, now_ms: int) -> RatesRequest:
        # One more than is shown: then there is a next page.
        return RatesRequest(
            self.choose, PER_PAGE + 1, now_ms - self.span.ms, (self.page - 1) * PER_PAGE
        )

    def choose(self, names: Collection[str]) -> Collection[str]:
        return [self.metric] if self.metric else counter_units.traffic(names)

    def query(self, **other: object) -> str:
        """The address of the same page but for these."""
        said = {"metric": self.metric, "since": self.span, "page": self.page} | other
        return "?" + urlencode({key: str(value) for key, value in said.items() if value})


@dataclass(frozen=True, slots=True)
class Choice:
    title: str
    query: str
    chosen: bool


@dataclass(frozen=True, slots=True)
class Row:
    target: str
    name: str
    metric: str
    rate: str
    mean: str
    highest: str
    verdict: str
    tone: str
    before: str  # what else befell it in this time
    age: str
    picture: str


@dataclass(frozen=True, slots=True)
class DeviceView:
    device: str
    standing: Standing
    targets: TargetsView
    as_of: str
    asking: Asking
    metrics: Sequence[Choice]
    spans: Sequence[Choice]
    rows: Sequence[Row]
    several: bool = (
        False  # targets with counters, which may be the same: then each row says whose it is
    )
    empty: str = ""
    command: str = ""  # what to type when it is empty
    previous: str = ""
    following: str = ""


def present(
    device: str,
    rated: Sequence[TargetRates],
    asking: Asking,
    now_ms: int,
    standing: Standing,
    overview: Overview | None = None,
) -> DeviceView:
    """`overview` is only looked at for what late targets wait for."""
    found = [(each, line) for each in rated for line in each.result.lines]
    rows = [_row(each, line, asking.span, now_ms) for each, line in found[:PER_PAGE]]
    names = dict.fromkeys(name for each in rated for name in each.names)
    empty, command = ("", "") if rows else _empty(device, rated, standing)
    return DeviceView(
        device,
        standing,
        device_targets.present(device, [each.target for each in rated], standing, overview),
        formatting.instant(now_ms),
        asking,
        [
            Choice(name or "traffic", asking.query(metric=name, page=0), name == asking.metric)
            for name in ("", *names)
        ],
        [Choice(span, asking.query(since=span, page=0), span is asking.span) for span in Span],
        rows,
        sum(bool(each.names) for each in rated) > 1,
        empty,
        command,
        asking.query(page=asking.page - 1) if asking.page > 1 else "",
        asking.query(page=asking.page + 1) if len(found) > PER_PAGE else "",
    )


def _empty(device: str, rated: Sequence[TargetRates], standing: Standing) -> tuple[str, str]:
    """Why there is no rate, and what to type next."""
    if not rated:
        return "This device has no target.", f"poller target add {device} --collector snmp"
    if not any(each.polls for each in rated):
        return _unread(standing), f"poller runs {device}"
    if any(each.names for each in rated):
        return "No counter was read in this time.", f"poller runs {device}"
    return "It has no counters. Its other values:", f"poller readings {device}"


def _unread(standing: Standing) -> str:
    """Polled without an answer is not the same as not polled."""
    polled = [seen for seen in standing.seen.values() if seen.status.run_ms]
    if not polled or any(seen.status.ok_ms for seen in polled):
        return "Nothing has been read yet."
    newest = max(polled, key=lambda seen: seen.status.finished_ms)
    since = formatting.instant(min(seen.status.since_ms for seen in polled))
    age = formatting.age(standing.now_ms - newest.status.finished_ms)
    when = f"{since[:10]} {since[11:19]} UTC"
    return f"Tried since {when}, and never an answer. The last error, {age} ago: {device_targets.error(newest)}."


def _row(rated: TargetRates, line: Line, span: Span, now_ms: int) -> Row:
    metric, newest = line.series.name, line.newest
    return Row(
        rated.target.name,
        " ".join(text for _, text in line.known_by),
        metric,
        counter_units.per_second(metric, newest.per_second),
        counter_units.per_second(metric, line.mean()),
        counter_units.per_second(metric, line.highest()),
        _verdict(newest),
        str(_TONES.get(newest.verdict, "")),
        _before(line.rates[:-1]),
        formatting.age(now_ms - newest.at_ms),
        _picture(rated, line, span, now_ms),
    )


def _verdict(rate: Rate) -> str:
    if rate.verdict not in _TONES:
        return rate.verdict.value
    return f"{GLYPHS[_TONES[rate.verdict]]} {rate.verdict.value}: {rate.reason}"


def _before(rates: Sequence[Rate]) -> str:
    """`before: 1 reset, 2 gaps`; nothing where all went well."""
    times = Counter(rate.verdict for rate in rates if rate.verdict in _TONES)
    told = ", ".join(
        f"{formatting.exact(number)} {verdict}" for verdict, number in sorted(times.items())
    )
    return f"before: {told}" if told else ""


def _picture(rated: TargetRates, line: Line, span: Span, now_ms: int) -> str:
    """The highest of every slice, so that no spike is lost; a hole where no rate is known."""
    interval_ms = rated.target.max_ms or rated.target.interval_ms
    slice_ms = max(1000, span.ms // _SLICES)
    shown = plot.window(now_ms + slice_ms, span.ms, slice_ms)
    longest_ms = round(GAP_INTERVALS * interval_ms)
    samples = [
        plot.Sample(at_ms, value)
        for at_ms, value in _slices(line.rates, slice_ms, longest_ms).items()
    ]
    holes = plot.gaps(samples, shown, longest_ms)
    resets = [
        rate.at_ms
        for rate in line.rates
        if rate.verdict is Verdict.RESET and rate.at_ms >= shown.start_ms
    ]
    sentence = _sentence(line, span, len(resets))
    return plot.small(plot.Line("rate", samples, filled=True), shown, sentence, holes, resets)


def _slices(rates: Sequence[Rate], slice_ms: int, longest_ms: int) -> dict[int, float]:
    """A rate holds for the whole time since the poll before; the average over a gap is not drawn."""
    found: dict[int, float] = {}
    for rate in rates:
        took_ms = round(rate.seconds * 1000)
        if rate.per_second is not None and took_ms <= longest_ms:
            first = rate.at_ms - took_ms
            for at_ms in range(first - first % slice_ms, rate.at_ms, slice_ms):
                found[at_ms] = max(rate.per_second, found.get(at_ms, 0.0))
    return found


def _sentence(line: Line, span: Span, resets: int) -> str:
    metric = line.series.name
    highest, newest = line.highest(), line.newest.per_second
    if highest is None:
        return f"{metric} over the last {span}: no rate is known."
    words = f"up to {counter_units.per_second(metric, highest)}, latest {counter_units.per_second(metric, newest)}"
    return f"{metric} over the last {span}: {words}." + (
        f" {formatting.counted(resets, 'reset')}." if resets else ""
    )
