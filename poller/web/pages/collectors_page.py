"""The collectors as a page and as JSON: what is installed here, which workers have it, and what cannot be used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from poller.collectors import api, descriptions
from poller.domain.record.overview import Worker
from poller.presentation import formatting
from poller.presentation.collector_trust import CollectorTrust
from poller.presentation.health import GLYPHS, Tone

if TYPE_CHECKING:
    from poller.collectors.registry import Registry

SCHEMA = "poller.collectors/1"
_TONES = {
    "quarantined": Tone.FAILING,
    "isolated": Tone.LATE,
    "deprecated API": Tone.LATE,
    "unknown": Tone.UNKNOWN,
}


@dataclass(frozen=True, slots=True)
class Found:
    """What this process has installed, what the cluster holds against it, and who is at work."""

    registry: Registry
    trust: CollectorTrust
    workers: Sequence[Worker]


@dataclass(frozen=True, slots=True)
class Row:
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
class Trouble:
    name: str
    origin: str
    state: str
    reason: str


@dataclass(frozen=True, slots=True)
class CollectorsView:
    as_of: str
    rows: Sequence[Row]
    troubles: Sequence[Trouble]


def document(found: Found, now_ms: int) -> dict[str, Any]:
    """Schema `poller.collectors/1`, as the command line gives it, and how many workers have each."""
    return {
        "schema": SCHEMA,
        "as_of": formatting.instant(now_ms),
        "api_version": api.API_VERSION,
        "api_served": sorted(api.SERVED),
        "items": [_jsonable(item) for item in items(found)],
        "doubted": [_jsonable(item) for item in found.trust.recorded_releases()],
        "broken": [asdict(each) for each in found.registry.broken],
    }


def items(found: Found) -> Iterator[dict[str, Any]]:
    for name, collector in found.registry.collectors.items():
        yield {
            **descriptions.describe(collector, found.registry),
            **found.trust.describe(collector, found.registry),
            "workers": sum(name in worker.collectors for worker in found.workers),
            "schema": descriptions.schema(collector),
        }


def present(found: Found, now_ms: int) -> CollectorsView:
    rows = [_row(item, len(found.workers)) for item in items(found)]
    return CollectorsView(formatting.instant(now_ms), rows, [*_broken(found), *_elsewhere(found)])


def _row(item: Mapping[str, Any], workers: int) -> Row:
    state = _state(item)
    tone = _TONES.get(state)
    return Row(
        name=item["name"],
        origin=f"{item['distribution']} {item['version']}",
        api="–".join(dict.fromkeys(map(str, item["api_versions"]))),
        abilities=", ".join(item["abilities"]),
        credentials=" or ".join(item["credentials"]),
        workers=f"{item['workers']} of {workers}",
        state=f"{GLYPHS[tone]} {state}" if tone else state,
        tone=str(tone or ""),
        note=item["deprecated"] or item["reason"],
        options=[{**option, "written": written(option)} for option in item["options"]],
    )


def _state(item: Mapping[str, Any]) -> str:
    state = item["state"] or "unknown"
    return "deprecated API" if item["deprecated"] and state == "ok" else str(state)


def written(option: Mapping[str, Any]) -> str:
    """Its default, as one types it behind `-o key=`."""
    value = option["default"]
    if option["required"]:
        return "must be given"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple | set | frozenset):
        return ",".join(map(str, value))
    return "" if value is None or value == {} else str(value)


def _broken(found: Found) -> Iterator[Trouble]:
    for each in found.registry.broken:
        hint = f"; try: {each.hint}" if each.hint else ""
        yield Trouble(each.name, each.distribution, each.state, f"{each.reason}{hint}")


def _elsewhere(found: Found) -> Iterator[Trouble]:
    """What workers cannot use although we can, or have never heard of."""
    here = {each.name for each in found.registry.broken}
    for worker in found.workers:
        for name, state in sorted(worker.broken.items()):
            if name not in here:
                yield Trouble(
                    name,
                    worker.name,
                    state,
                    "poller collectors, typed where that worker runs, says why",
                )


def _jsonable(item: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _plain(value) for key, value in item.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds").replace("+00:00", "Z")
    if isinstance(value, Mapping):
        return _jsonable(value)
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(each) for each in value]
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)
