"""Pure functions from JSON objects to readings, driven by tables of columns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from poller.collectors import api

#: One JSON object of a response.
Row = Mapping[str, Any]

TASK_HELP = {
    "proxmox_task_ok": "Whether the last task of its type succeeded: 1 yes, 0 no",
    "proxmox_task_end_timestamp_seconds": "End of the last task, in seconds since 1970",
    "proxmox_task_duration_seconds": "Duration of the last task",
}


class Column(NamedTuple):
    """A property of a JSON object, and the metric of its value."""

    property: str
    metric: str
    help: str
    kind: api.Kind = api.Kind.GAUGE


def readings(
    row: Row, columns: Iterable[Column], labels: Mapping[str, str]
) -> Iterator[api.Reading]:
    """Yield a reading for each column. A property that is missing or no number has no reading."""
    for column in columns:
        value = number(row.get(column.property))
        if value is not None:
            yield api.Reading(column.metric, value, labels, column.kind)


def number(value: Any) -> float | None:
    """Return a finite number, or None. Proxmox sends some numbers as strings."""
    if not isinstance(value, bool | int | float | str):
        return None
    try:
        converted = float(value)
    except (ValueError, OverflowError):
        return None
    return converted if math.isfinite(converted) else None


def text(row: Row, name: str) -> str:
    """Return a property as text; a missing property is empty."""
    value = row.get(name)
    return "" if value is None else str(value)


def objects(data: Any, path: str) -> list[Row]:
    """Return the data of a response as rows.

    Raises DeviceProtocolError if the data is not a list of objects.
    """
    if not isinstance(data, list) or not all(isinstance(row, dict) for row in data):
        raise api.DeviceProtocolError(f"the response to {path} is not a list of objects")
    return data


def last_tasks(
    rows: Iterable[Row], types: Iterable[str], type_name: str, id_name: str
) -> Iterator[api.Reading]:
    """Yield readings of the last ended task for each node, type and id.

    `type_name` and `id_name` are the properties with the type and the id of a task.
    """
    reported_types = set(types)
    last: dict[tuple[str, str, str], Row] = {}
    for row in rows:
        task_type = text(row, type_name)
        ended = number(row.get("endtime"))
        if task_type not in reported_types or ended is None:
            continue

        key = (text(row, "node"), task_type, text(row, id_name))
        if key not in last or ended > (number(last[key].get("endtime")) or 0):
            last[key] = row

    for (node, task_type, task_id), row in last.items():
        yield from _task(row, {"node": node, "task": task_type, "id": task_id})


def _task(row: Row, labels: Mapping[str, str]) -> Iterator[api.Reading]:
    started = number(row.get("starttime"))
    ended = number(row.get("endtime")) or 0.0
    yield api.Reading("proxmox_task_ok", text(row, "status") == "OK", labels)
    yield api.Reading("proxmox_task_end_timestamp_seconds", ended, labels)
    if started is not None:
        yield api.Reading("proxmox_task_duration_seconds", ended - started, labels)
