"""Proxmox VE: pure functions from responses of its API to readings.

One request returns all nodes, guests and storages of a cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from poller.collectors import api
from poller_proxmox import rows
from poller_proxmox.rows import Column, Row

RESOURCES = "/cluster/resources"
STATUS = "/cluster/status"
TASKS = "/cluster/tasks"

#: The path of the request that reads a part.
PATHS = {
    "cluster": STATUS,
    "nodes": RESOURCES,
    "guests": RESOURCES,
    "storage": RESOURCES,
    "tasks": TASKS,
}

_COUNTER = api.Kind.COUNTER

CLUSTER = (
    Column("quorate", "proxmox_cluster_quorate", "Whether the cluster has a quorum: 1 yes, 0 no"),
    Column("nodes", "proxmox_cluster_nodes", "Nodes of the cluster, online and offline"),
)
NODE = (
    Column("cpu", "proxmox_node_cpu_ratio", "Processor load, 0 to 1"),
    Column("maxcpu", "proxmox_node_cpus", "Processors"),
    Column("mem", "proxmox_node_memory_bytes", "Memory in use"),
    Column("maxmem", "proxmox_node_memory_total_bytes", "Memory size"),
    Column("disk", "proxmox_node_root_bytes", "Space in use on the root file system"),
    Column("maxdisk", "proxmox_node_root_total_bytes", "Size of the root file system"),
    Column("uptime", "proxmox_node_uptime_seconds", "Time since the node started"),
)
GUEST = (
    Column("cpu", "proxmox_guest_cpu_ratio", "Processor load, 0 to 1"),
    Column("maxcpu", "proxmox_guest_cpus", "Processors"),
    Column("mem", "proxmox_guest_memory_bytes", "Memory in use"),
    Column("maxmem", "proxmox_guest_memory_total_bytes", "Memory size"),
    Column("disk", "proxmox_guest_disk_bytes", "Space in use on the root disk (containers only)"),
    Column("maxdisk", "proxmox_guest_disk_total_bytes", "Size of the root disk"),
    Column("uptime", "proxmox_guest_uptime_seconds", "Time since the guest started"),
    Column("netin", "proxmox_guest_network_receive_bytes", "Bytes received", _COUNTER),
    Column("netout", "proxmox_guest_network_transmit_bytes", "Bytes sent", _COUNTER),
    Column("diskread", "proxmox_guest_disk_read_bytes", "Bytes read from disks", _COUNTER),
    Column("diskwrite", "proxmox_guest_disk_written_bytes", "Bytes written to disks", _COUNTER),
)
STORAGE = (
    Column("disk", "proxmox_storage_bytes", "Space in use on the storage"),
    Column("maxdisk", "proxmox_storage_total_bytes", "Size of the storage"),
)

HELP = {
    **{column.metric: column.help for column in (*CLUSTER, *NODE, *GUEST, *STORAGE)},
    **rows.TASK_HELP,
    "proxmox_node_up": "Whether the node is online: 1 yes, 0 no",
    "proxmox_guest_up": "Whether the guest runs: 1 yes, 0 no",
    "proxmox_guest_info": "Name, node, type, pool and tags of the guest",
    "proxmox_storage_up": "Whether the storage is available: 1 yes, 0 no",
    "proxmox_storage_info": "Type of the storage, and whether nodes share it",
}


def readings(part: str, data: Any, task_types: Iterable[str]) -> Iterator[api.Reading]:
    """Yield the readings of one part. Raises DeviceProtocolError if the data is malformed."""
    part_rows = rows.objects(data, PATHS[part])
    if part == "tasks":
        yield from rows.last_tasks(part_rows, task_types, "type", "id")
        return

    row_readings = _ROW_READINGS[part]
    for row in part_rows:
        yield from row_readings(row)


def _cluster(row: Row) -> Iterator[api.Reading]:
    """Yield the readings of a cluster. A node without a cluster has no such row."""
    if row.get("type") == "cluster":
        yield from rows.readings(row, CLUSTER, {"cluster": rows.text(row, "name")})


def _node(row: Row) -> Iterator[api.Reading]:
    if row.get("type") == "node":
        labels = {"node": rows.text(row, "node")}
        yield api.Reading("proxmox_node_up", row.get("status") == "online", labels)
        yield from rows.readings(row, NODE, labels)


def _guest(row: Row) -> Iterator[api.Reading]:
    """Yield the readings of a virtual machine or container, but none of a template.

    The only label of the series is the guest's number: the number stays the same when the guest
    moves to another node.
    """
    is_guest = row.get("type") in ("qemu", "lxc")
    if not is_guest or rows.number(row.get("template")):
        return

    labels = {"vmid": rows.text(row, "vmid")}
    info = {name: rows.text(row, name) for name in ("name", "node", "type", "pool", "tags")}
    yield api.Reading("proxmox_guest_info", 1, {**labels, **info}, api.Kind.INFO)
    yield api.Reading("proxmox_guest_up", row.get("status") == "running", labels)
    yield from rows.readings(row, GUEST, labels)


def _storage(row: Row) -> Iterator[api.Reading]:
    """Yield the readings of a storage on one node.

    Each node lists a shared storage. The label `node` separates them, because nodes may disagree.
    """
    if row.get("type") == "storage":
        labels = {"node": rows.text(row, "node"), "storage": rows.text(row, "storage")}
        info = {"type": rows.text(row, "plugintype"), "shared": rows.text(row, "shared")}
        yield api.Reading("proxmox_storage_info", 1, {**labels, **info}, api.Kind.INFO)
        yield api.Reading("proxmox_storage_up", row.get("status") == "available", labels)
        yield from rows.readings(row, STORAGE, labels)


_ROW_READINGS = {"cluster": _cluster, "nodes": _node, "guests": _guest, "storage": _storage}
