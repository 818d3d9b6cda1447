"""Proxmox Backup Server: what its API says, as readings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote

from poller.collectors import api
from poller_proxmox import rows
from poller_proxmox.rows import Column

NODE_STATUS, USAGE = "/nodes/localhost/status", "/status/datastore-usage"
TASKS = "/nodes/localhost/tasks?limit=500"

NODE = (
    Column("cpu", "proxmox_backup_cpu_ratio", "Processor load, 0 to 1"),
    Column("wait", "proxmox_backup_io_wait_ratio", "Share of time spent waiting for disks, 0 to 1"),
    Column("uptime", "proxmox_backup_uptime_seconds", "Time since it started"),
)
_SPACE = ("used", "total")
DATASTORE = (
    Column("used", "proxmox_datastore_bytes", "Datastore in use"),
    Column("avail", "proxmox_datastore_free_bytes", "Left of the datastore"),
    Column("total", "proxmox_datastore_total_bytes", "Datastore"),
    Column(
        "estimated-full-date",
        "proxmox_datastore_full_timestamp_seconds",
        "When it will be full, seconds since 1970",
    ),
)
GARBAGE = (
    Column(
        "disk-bytes",
        "proxmox_datastore_chunk_bytes",
        "Bytes of all chunks, at the last garbage collection",
    ),
    Column(
        "index-data-bytes",
        "proxmox_datastore_indexed_bytes",
        "Bytes that backups refer to, each as often as it is",
    ),
    Column(
        "pending-bytes", "proxmox_datastore_pending_bytes", "Bytes of chunks that are to be removed"
    ),
)
GROUP = (
    Column(
        "last-backup",
        "proxmox_backup_last_timestamp_seconds",
        "When it was backed up last, seconds since 1970",
    ),
    Column("backup-count", "proxmox_backup_count", "Backups that are kept of it"),
)
HELP = {
    **{column.metric: column.help for column in (*NODE, *DATASTORE, *GARBAGE, *GROUP)},
    **rows.TASK_HELP,
    "proxmox_backup_memory_used_bytes": "Memory in use",
    "proxmox_backup_memory_total_bytes": "Memory",
    "proxmox_backup_root_used_bytes": "Root file system in use",
    "proxmox_backup_root_total_bytes": "Root file system",
    "proxmox_datastore_up": "Can the datastore be read? 1 yes, 0 no",
}


def node(data: Any) -> Iterator[api.Reading]:
    if not isinstance(data, dict):
        raise api.DeviceProtocolError(f"the answer to {NODE_STATUS} is no object")
    yield from rows.readings(data, NODE, {})
    for name in ("memory", "root"):
        space = data.get(name)
        if isinstance(space, dict):
            columns = [Column(each, f"proxmox_backup_{name}_{each}_bytes", "") for each in _SPACE]
            yield from rows.readings(space, columns, {})


def datastores(data: Any) -> Iterator[api.Reading]:
    for row in rows.objects(data, USAGE):
        labels = {"datastore": rows.text(row, "store")}
        yield api.Reading("proxmox_datastore_up", not row.get("error"), labels)
        yield from rows.readings(row, DATASTORE, labels)
        garbage = row.get("gc-status")
        if isinstance(garbage, dict):
            yield from rows.readings(garbage, GARBAGE, labels)


def stores(data: Any) -> list[str]:
    """Names of the datastores that can be read."""
    found = rows.objects(data, USAGE)
    return [rows.text(row, "store") for row in found if row.get("store") and not row.get("error")]


def groups_path(store: str) -> str:
    return f"/admin/datastore/{quote(store, safe='')}/groups"


def groups(store: str, data: Any) -> Iterator[api.Reading]:
    """The backups of one guest or host in one datastore."""
    for row in rows.objects(data, groups_path(store)):
        kind, name = rows.text(row, "backup-type"), rows.text(row, "backup-id")
        yield from rows.readings(row, GROUP, {"datastore": store, "type": kind, "id": name})


def tasks(data: Any, types: Iterable[str]) -> Iterator[api.Reading]:
    yield from rows.last_tasks(rows.objects(data, TASKS), types, "worker_type", "worker_id")
