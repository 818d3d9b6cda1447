"""Rows of JSON objects to readings, by tables: property, metric, meaning. What is no number is left out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from poller.collectors import api


class Column(NamedTuple):
    property: str
    metric: str
    help: str
    kind: api.Kind = api.Kind.GAUGE


def readings(
    row: Mapping[str, Any], columns: Iterable[Column], labels: Mapping[str, str]
) -> Iterator[api.Reading]:
    for column in columns:
        value = number(row.get(column.property))
        if value is not None:
            yield api.Reading(column.metric, value, labels, column.kind)


def number(value: Any) -> float | None:
    """Proxmox writes some numbers as texts."""
    if isinstance(value, bool | int | float | str):
        try:
            found = float(value)
        except (ValueError, OverflowError):
            return None
        return found if math.isfinite(found) else None
    return None


def text(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    return "" if value is None else str(value)


def objects(data: Any, what: str) -> list[Mapping[str, Any]]:
    """The rows of an answer. Raises DeviceProtocolError when it is no list of objects."""
    if not isinstance(data, list) or not all(isinstance(row, dict) for row in data):
        raise api.DeviceProtocolError(f"the answer to {what} is no list of objects")
    return data


def last_tasks(
    rows: Iterable[Mapping[str, Any]], types: Iterable[str], type_name: str, id_name: str
) -> Iterator[api.Reading]:
    """Of each kind of task, and what it was about, the last one that has ended: when, how long, and did it go well?"""
    wanted = set(types)
    last: dict[tuple[str, str, str], Mapping[str, Any]] = {}
    for row in rows:
        kind, ended = text(row, type_name), number(row.get("endtime"))
        if kind in wanted and ended is not None:
            key = (text(row, "node"), kind, text(row, id_name))
            if key not in last or ended > (number(last[key].get("endtime")) or 0):
                last[key] = row
    for (node, kind, about), row in last.items():
        yield from _task(row, {"node": node, "task": kind, "id": about})


def _task(row: Mapping[str, Any], labels: Mapping[str, str]) -> Iterator[api.Reading]:
    ended, began = number(row.get("endtime")) or 0.0, number(row.get("starttime"))
    yield api.Reading("proxmox_task_ok", text(row, "status") == "OK", labels)
    yield api.Reading("proxmox_task_end_timestamp_seconds", ended, labels)
    if began is not None:
        yield api.Reading("proxmox_task_duration_seconds", ended - began, labels)


TASK_HELP = {
    "proxmox_task_ok": "Did the last task of its kind end well? 1 yes, 0 no",
    "proxmox_task_end_timestamp_seconds": "When it ended, in seconds since 1970",
    "proxmox_task_duration_seconds": "How long it took",
}
