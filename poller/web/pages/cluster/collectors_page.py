"""The collectors page and its JSON: who uses each collector and how its polls go, those that are
held back, and those that cannot be used. The page of one collector is in collector_page.py.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from poller.collectors import api
from poller.domain.inventory import target_filter
from poller.domain.inventory.target_filter import TargetFilter
from poller.domain.metrics.poll_totals import EDGES_MS, PollTotals, Time
from poller.domain.record.collector_day import AllFigures
from poller.domain.record.overview import Worker
from poller.presentation import formatting
from poller.presentation.cluster import collectors_json
from poller.presentation.collector_trust import CollectorTrust
from poller.presentation.health import Tone

if TYPE_CHECKING:
    from poller.collectors.registry import Registry

_TONES = {
    "quarantined": Tone.FAILING,
    "isolated": Tone.LATE,
    "deprecated API": Tone.LATE,
    "unknown": Tone.UNKNOWN,
}
_HELD = ("quarantined", "isolated")
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
#: Error codes that a row of the list names; the page of the collector has all.
FEW_CODES = 3


@dataclass(frozen=True, slots=True)
class CollectorsStatus:
    """The collectors of this process, the crash records of the cluster, the living workers, and
    the figures of the last day.
    """

    registry: Registry
    trust: CollectorTrust
    workers: Sequence[Worker]
    figures: AllFigures = field(default_factory=AllFigures)


@dataclass(frozen=True, slots=True)
class CodeCount:
    """Failed attempts with an error code. `where` selects the devices that fail so now."""

    code: str
    number: str
    where: str


@dataclass(frozen=True, slots=True)
class PollFigures:
    """The users of a collector, and the results of its polls. Times are estimated from buckets."""

    where: str  # selects the devices that use it
    devices: str
    targets: str
    polls: str
    success: str
    tone: str
    p50: str
    p95: str
    p99: str
    codes: Sequence[CodeCount]  # the most frequent first
    more_codes: int


@dataclass(frozen=True, slots=True)
class CollectorRow:
    """A collector that is installed here or on a worker, or that a target names."""

    name: str
    path: str
    origin: str
    api: str
    workers: str
    state: str
    tone: str
    note: str
    figures: PollFigures


@dataclass(frozen=True, slots=True)
class HeldRow:
    """A release of a collector that is isolated or quarantined because of its crashes."""

    name: str
    distribution: str
    state: str
    tone: str
    age: str
    crashes: str
    reason: str
    command: str  # that releases it


@dataclass(frozen=True, slots=True)
class UnusableCollector:
    name: str
    origin: str  # its distribution, or the worker that cannot use it
    state: str
    reason: str


@dataclass(frozen=True, slots=True)
class CollectorsView:
    as_of: str
    span: str  # of the polls that are counted
    held: Sequence[HeldRow]
    rows: Sequence[CollectorRow]
    unusable: Sequence[UnusableCollector]
    told: Told | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """The result of a release; with a ticket its polls can be watched."""

    text: str
    ticket: str


def document(status: CollectorsStatus, now_ms: int) -> dict[str, Any]:
    """The collectors as JSON, in the schema of the command, with the number of workers of each."""
    recorded = status.trust.recorded_releases()
    return {
        "schema": collectors_json.SCHEMA,
        "as_of": formatting.instant(now_ms),
        "api_version": api.API_VERSION,
        "api_served": sorted(api.SERVED),
        "items": [_json_fields(item) for item in _items(status)],
        "doubted": [_json_fields(item) for item in recorded],
        "broken": [asdict(each) for each in status.registry.broken],
    }


def build_view(status: CollectorsStatus, now_ms: int, told: Told | None = None) -> CollectorsView:
    """Build the view of the collectors page: what is held back first, then by name."""
    items = {item["name"]: item for item in _items(status)}
    used = {name for name, each in status.figures.by_collector.items() if each.targets}
    rows = [row_of(name, items.get(name), status) for name in sorted(items.keys() | used)]
    unusable = [*_broken_here(status), *_broken_on_workers(status)]
    return CollectorsView(
        as_of=formatting.instant(now_ms),
        span=span_text(status.figures),
        held=held_rows(status),
        rows=rows,
        unusable=unusable,
        told=told,
    )


def told(name: str, number: int, ticket: str) -> Told:
    """Say in words how the release of a collector ended."""
    letters = formatting.counted(number, "dead letter")
    were = "was" if number == 1 else "were"
    return Told(
        f"{name}: released, it runs like any other again. {letters} {were} requeued.", ticket
    )


def held_rows(status: CollectorsStatus, name: str = "") -> list[HeldRow]:
    """The releases that are isolated or quarantined, those of one collector or of all."""
    found = []
    for item in status.trust.recorded_releases():
        if item["state"] in _HELD and name in ("", item["collector"]):
            tone = _TONES[item["state"]]
            found.append(
                HeldRow(
                    name=item["collector"],
                    distribution=item["distribution"],
                    state=item["state"],
                    tone=str(tone),
                    age=formatting.age(1000 * (item["since_seconds"] or 0)),
                    crashes=formatting.exact(item["crashes"]),
                    reason=item["reason"],
                    command=release_command(item["collector"]),
                )
            )
    return sorted(found, key=lambda row: (row.state != "quarantined", row.name))


def release_command(name: str) -> str:
    """The command that releases a collector."""
    return f"poller collectors release {shlex.quote(name)}"


def span_text(figures: AllFigures) -> str:
    """`polls of the last day`, or since when they are counted."""
    if figures.as_of_ms - figures.since_ms >= DAY_MS - HOUR_MS:
        return "polls of the last day"
    return f"polls since {formatting.instant(figures.since_ms)[:16].replace('T', ' ')} UTC"


def figures_of(name: str, figures: AllFigures, most_codes: int = FEW_CODES) -> PollFigures:
    """The figures of one collector as texts."""
    own = figures.of(name)
    totals, took = own.totals, own.totals.times[Time.DURATION]
    where = TargetFilter(collectors=(name,))
    codes = [
        CodeCount(code, formatting.count(number), _where(replace(where, codes=(code,))))
        for code, number in totals.codes.most_common(most_codes)
        if number
    ]
    known = sum(number > 0 for number in totals.codes.values())
    return PollFigures(
        where=_where(where),
        devices=formatting.exact(own.devices),
        targets=formatting.exact(own.targets),
        polls=formatting.count(totals.polls),
        success=formatting.share(totals.answered, totals.polls),
        tone=_success_tone(totals),
        p50=_length(took.quantile_ms(0.5)),
        p95=_length(took.quantile_ms(0.95)),
        p99=_length(took.quantile_ms(0.99)),
        codes=codes,
        more_codes=known - len(codes),
    )


def row_of(name: str, item: Mapping[str, Any] | None, status: CollectorsStatus) -> CollectorRow:
    """The row of a collector. Without an item it is not installed in this process."""
    having = [worker for worker in status.workers if name in worker.collectors]
    if item is None:
        origin = having[0].collectors[name] if having else formatting.NOT_MEASURED
        state, tone, note, api_versions = "not here", Tone.UNKNOWN, _elsewhere(having), ""
    else:
        origin = f"{item['distribution']} {item['version']}"
        state = _state(item)
        tone = _TONES.get(state, Tone.OK)
        note = item["deprecated"] or item["reason"]
        api_versions = "–".join(dict.fromkeys(map(str, item["api_versions"])))
    return CollectorRow(
        name=name,
        path=f"collectors/{quote(name, safe='')}",
        origin=origin,
        api=api_versions or formatting.NOT_MEASURED,
        workers=f"{len(having)} of {len(status.workers)}",
        state=state,
        tone=str(tone),
        note=note,
        figures=figures_of(name, status.figures),
    )


def item_of(name: str, status: CollectorsStatus) -> dict[str, Any] | None:
    """The JSON fields of a collector; None if it is not installed in this process."""
    collector = status.registry.collectors.get(name)
    if collector is None:
        return None
    return collectors_json.fields(collector, status.registry, status.trust, status.workers)


def _elsewhere(having: Sequence[Worker]) -> str:
    if not having:
        return "targets name it, and nothing that runs has it"
    return "only workers have it: its options are described where it is installed"


def _where(wanted: TargetFilter) -> str:
    return target_filter.text(wanted)


def _success_tone(totals: PollTotals) -> str:
    """Failing below 9 of 10 polls, late below 99 of 100; "" without polls."""
    if not totals.polls:
        return ""
    share = totals.answered / totals.polls
    return str(Tone.OK if share >= 0.99 else Tone.LATE if share >= 0.9 else Tone.FAILING)


def _length(ms: float | None) -> str:
    """A time that was estimated; above the last bucket only the edge is known."""
    if ms is None:
        return formatting.NOT_MEASURED
    if ms == math.inf:
        return f"> {formatting.duration(EDGES_MS[-1])}"
    return formatting.duration(ms)


def default_text(option: Mapping[str, Any]) -> str:
    """The default of an option as it is typed after `-o key=`."""
    value = option["default"]
    if option["required"]:
        return "must be given"
    if value is None or value == {}:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple | set | frozenset):
        return ",".join(map(str, value))
    return str(value)


def _items(status: CollectorsStatus) -> Iterator[dict[str, Any]]:
    for collector in status.registry.collectors.values():
        yield collectors_json.fields(collector, status.registry, status.trust, status.workers)


def _state(item: Mapping[str, Any]) -> str:
    """The trust in a collector. A deprecated API matters only for a trusted one."""
    state = item["state"] or "unknown"
    if item["deprecated"] and state == "ok":
        return "deprecated API"
    return str(state)


def _broken_here(status: CollectorsStatus) -> Iterator[UnusableCollector]:
    for broken in status.registry.broken:
        reason = broken.reason
        if broken.hint:
            reason += f"; try: {broken.hint}"

        yield UnusableCollector(broken.name, broken.distribution, broken.state, reason)


def _broken_on_workers(status: CollectorsStatus) -> Iterator[UnusableCollector]:
    """The collectors that a worker cannot use, except those that are broken here too."""
    broken_here = {broken.name for broken in status.registry.broken}
    reason = "poller collectors, typed where that worker runs, shows the reason"
    for worker in status.workers:
        for name, state in sorted(worker.broken.items()):
            if name not in broken_here:
                yield UnusableCollector(name, worker.name, state, reason)


def _json_fields(item: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an item with values that JSON has."""
    fields = {}
    for key, value in item.items():
        fields[key] = _json_value(value)
    return fields


def _json_value(value: Any) -> Any:
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, datetime):
        text = value.isoformat(timespec="seconds")
        return text.replace("+00:00", "Z")
    if isinstance(value, Mapping):
        return _json_fields(value)
    if isinstance(value, list | tuple | set | frozenset):
        return [_json_value(each) for each in value]
    return str(value)
