"""The collectors page and its JSON: the collectors installed here, the workers that have them, and
the collectors that cannot be used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from poller.collectors import api
from poller.domain.record.overview import Worker
from poller.presentation import formatting
from poller.presentation.cluster import collectors_json
from poller.presentation.collector_trust import CollectorTrust
from poller.presentation.health import GLYPHS, Tone

if TYPE_CHECKING:
    from poller.collectors.registry import Registry

_TONES = {
    "quarantined": Tone.FAILING,
    "isolated": Tone.LATE,
    "deprecated API": Tone.LATE,
    "unknown": Tone.UNKNOWN,
}


@dataclass(frozen=True, slots=True)
class CollectorsStatus:
    """The collectors of this process, the crash records of the cluster, and the living workers."""

    registry: Registry
    trust: CollectorTrust
    workers: Sequence[Worker]


@dataclass(frozen=True, slots=True)
class CollectorRow:
    name: str
    origin: str
    api: str
    abilities: str
    credentials: str
    workers: str
    state: str
    tone: str
    note: str
    options: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class UnusableCollector:
    name: str
    origin: str  # its distribution, or the worker that cannot use it
    state: str
    reason: str


@dataclass(frozen=True, slots=True)
class CollectorsView:
    as_of: str
    rows: Sequence[CollectorRow]
    unusable: Sequence[UnusableCollector]


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


def build_view(status: CollectorsStatus, now_ms: int) -> CollectorsView:
    """Build the view of the collectors page."""
    workers = len(status.workers)
    rows = [_row(item, workers) for item in _items(status)]
    unusable = [*_broken_here(status), *_broken_on_workers(status)]
    as_of = formatting.instant(now_ms)
    return CollectorsView(as_of, rows, unusable)


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


def _row(item: Mapping[str, Any], workers: int) -> CollectorRow:
    state = _state(item)
    tone = _TONES.get(state)
    if tone:
        state = f"{GLYPHS[tone]} {state}"

    api_versions = dict.fromkeys(map(str, item["api_versions"]))
    options = []
    for option in item["options"]:
        options.append({**option, "default_text": default_text(option)})

    return CollectorRow(
        name=item["name"],
        origin=f"{item['distribution']} {item['version']}",
        api="–".join(api_versions),
        abilities=", ".join(item["abilities"]),
        credentials=" or ".join(item["credentials"]),
        workers=f"{item['workers']} of {workers}",
        state=state,
        tone=str(tone or ""),
        note=item["deprecated"] or item["reason"],
        options=options,
    )


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
