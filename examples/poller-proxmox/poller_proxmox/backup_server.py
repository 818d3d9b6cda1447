"""Proxmox Backup Server: pure functions from responses of its API to readings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote

from poller.collectors import api
from poller_proxmox import rows
from poller_proxmox.rows import Column

NODE_STATUS = "/nodes/localhost/status"
USAGE = "/status/datastore-usage"
TASKS = "/nodes/localhost/tasks?limit=500"

NODE = (
    Column("cpu", "proxmox_backup_cpu_ratio", "Processor load, 0 to 1"),
    Column("wait", "proxmox_backup_io_wait_ratio", "Share of time spent waiting for disks, 0 to 1"),
    Column("uptime", "proxmox_backup_uptime_seconds", "Time since the server started"),
)
MEMORY = (
    Column("used", "proxmox_backup_memory_used_bytes", "Memory in use"),
    Column("total", "proxmox_backup_memory_total_bytes", "Memory size"),
)
ROOT = (
    Column("used", "proxmox_backup_root_used_bytes", "Space in use on the root file system"),
    Column("total", "proxmox_backup_root_total_bytes", "Size of the root file system"),
)
DATASTORE = (
    Column("used", "proxmox_datastore_bytes", "Space in use on the datastore"),
    Column("avail", "proxmox_datastore_free_bytes", "Free space on the datastore"),
    Column("total", "proxmox_datastore_total_bytes", "Size of the datastore"),
    Column(
        "estimated-full-date",
        "proxmox_datastore_full_timestamp_seconds",
        "Estimated instant when the datastore is full, in seconds since 1970",
    ),
)
GARBAGE = (
    Column(
        "disk-bytes",
        "proxmox_datastore_chunk_bytes",
        "Bytes of all chunks at the last garbage collection",
    ),
    Column(
        "index-data-bytes",
        "proxmox_datastore_indexed_bytes",
        "Bytes of all backups before deduplication",
    ),
    Column(
        "pending-bytes",
        "proxmox_datastore_pending_bytes",
        "Bytes of chunks that wait for their removal",
    ),
)
GROUP = (
    Column(
        "last-backup",
        "proxmox_backup_last_timestamp_seconds",
        "Instant of the last backup, in seconds since 1970",
    ),
    Column("backup-count", "proxmox_backup_count", "Stored backups"),
)

_COLUMNS = (*NODE, *MEMORY, *ROOT, *DATASTORE, *GARBAGE, *GROUP)
HELP = {
    **{column.metric: column.help for column in _COLUMNS},
    **rows.TASK_HELP,
    "proxmox_datastore_up": "Whether the datastore can be read: 1 yes, 0 no",
}


def node(data: Any) -> Iterator[api.Reading]:
    """Yield the readings of the server itself."""
    if not isinstance(data, dict):
        raise api.DeviceProtocolError(f"the response to {NODE_STATUS} is not an object")

    yield from rows.readings(data, NODE, {})
    for name, columns in (("memory", MEMORY), ("root", ROOT)):
        space = data.get(name)
        if isinstance(space, dict):
            yield from rows.readings(space, columns, {})


def datastores(data: Any) -> Iterator[api.Reading]:
    """Yield the state, the space and the garbage collection of each datastore."""
    for row in rows.objects(data, USAGE):
        labels = {"datastore": rows.text(row, "store")}
        yield api.Reading("proxmox_datastore_up", not row.get("error"), labels)
        yield from rows.readings(row, DATASTORE, labels)

        garbage = row.get("gc-status")
        if isinstance(garbage, dict):
            yield from rows.readings(garbage, GARBAGE, labels)


def readable_stores(data: Any) -> list[str]:
    """Return the names of the datastores that can be read."""
    names = []
    for row in rows.objects(data, USAGE):
        if row.get("store") and not row.get("error"):
            names.append(rows.text(row, "store"))
    return names


def groups_path(store: str) -> str:
    return f"/admin/datastore/{quote(store, safe='')}/groups"


def groups(store: str, data: Any) -> Iterator[api.Reading]:
    """Yield the readings of each backup group: the backups of one guest or host in a datastore."""
    for row in rows.objects(data, groups_path(store)):
        labels = {
            "datastore": store,
            "type": rows.text(row, "backup-type"),
            "id": rows.text(row, "backup-id"),
        }
        yield from rows.readings(row, GROUP, labels)


def tasks(data: Any, types: Iterable[str]) -> Iterator[api.Reading]:
    """Yield the readings of the last ended task for each type and id."""
    yield from rows.last_tasks(rows.objects(data, TASKS), types, "worker_type", "worker_id")
