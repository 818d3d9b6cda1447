"""Proxmox VE: what its API says, as readings. One request answers for all nodes, guests and storages of a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from poller.collectors import api
from poller_proxmox import rows
from poller_proxmox.rows import Column

RESOURCES, STATUS, TASKS = "/cluster/resources", "/cluster/status", "/cluster/tasks"
#: Which request a part needs.
PATHS = {
    "cluster": STATUS,
    "nodes": RESOURCES,
    "guests": RESOURCES,
    "storage": RESOURCES,
    "tasks": TASKS,
}

_COUNTER = api.Kind.COUNTER
NODE = (
    Column("cpu", "proxmox_node_cpu_ratio", "Processor load, 0 to 1"),
    Column("maxcpu", "proxmox_node_cpus", "Processors"),
    Column("mem", "proxmox_node_memory_bytes", "Memory in use"),
    Column("maxmem", "proxmox_node_memory_total_bytes", "Memory"),
    Column("disk", "proxmox_node_root_bytes", "Root file system in use"),
    Column("maxdisk", "proxmox_node_root_total_bytes", "Root file system"),
    Column("uptime", "proxmox_node_uptime_seconds", "Time since it started"),
)
GUEST = (
    Column("cpu", "proxmox_guest_cpu_ratio", "Processor load, 0 to 1"),
    Column("maxcpu", "proxmox_guest_cpus", "Processors"),
    Column("mem", "proxmox_guest_memory_bytes", "Memory in use"),
    Column("maxmem", "proxmox_guest_memory_total_bytes", "Memory"),
    Column("disk", "proxmox_guest_disk_bytes", "Root disk in use (containers only)"),
    Column("maxdisk", "proxmox_guest_disk_total_bytes", "Root disk"),
    Column("uptime", "proxmox_guest_uptime_seconds", "Time since it started"),
    Column("netin", "proxmox_guest_network_receive_bytes", "Bytes received", _COUNTER),
    Column("netout", "proxmox_guest_network_transmit_bytes", "Bytes sent", _COUNTER),
    Column("diskread", "proxmox_guest_disk_read_bytes", "Bytes read from disks", _COUNTER),
    Column("diskwrite", "proxmox_guest_disk_written_bytes", "Bytes written to disks", _COUNTER),
)
STORAGE = (
    Column("disk", "proxmox_storage_bytes", "Storage in use"),
    Column("maxdisk", "proxmox_storage_total_bytes", "Storage"),
)
HELP = {
    **{column.metric: column.help for column in (*NODE, *GUEST, *STORAGE)},
    **rows.TASK_HELP,
    "proxmox_cluster_quorate": "Have the nodes a majority? 1 yes, 0 no",
    "proxmox_cluster_nodes": "Nodes of the cluster, those that are away included",
    "proxmox_node_up": "Is the node online? 1 yes, 0 no",
    "proxmox_guest_up": "Does the guest run? 1 yes, 0 no",
    "proxmox_guest_info": "What the guest is",
    "proxmox_storage_up": "Is the storage available? 1 yes, 0 no",
    "proxmox_storage_info": "What the storage is",
}


def readings(part: str, data: Any, task_types: Iterable[str]) -> Iterator[api.Reading]:
    """Raises DeviceProtocolError when the answer is not what Proxmox says."""
    found = rows.objects(data, PATHS[part])
    if part == "tasks":
        yield from rows.last_tasks(found, task_types, "type", "id")
        return
    one = {"cluster": _cluster, "nodes": _node, "guests": _guest, "storage": _storage}[part]
    for row in found:
        yield from one(row)


def _cluster(row: Mapping[str, Any]) -> Iterator[api.Reading]:
    """A node that stands alone has no cluster, and nothing to say here."""
    if row.get("type") == "cluster":
        labels = {"cluster": rows.text(row, "name")}
        columns = (
            Column("quorate", "proxmox_cluster_quorate", ""),
            Column("nodes", "proxmox_cluster_nodes", ""),
        )
        yield from rows.readings(row, columns, labels)


def _node(row: Mapping[str, Any]) -> Iterator[api.Reading]:
    if row.get("type") == "node":
        labels = {"node": rows.text(row, "node")}
        yield api.Reading("proxmox_node_up", row.get("status") == "online", labels)
        yield from rows.readings(row, NODE, labels)


def _guest(row: Mapping[str, Any]) -> Iterator[api.Reading]:
    """Known by its number, which stays when it moves to another node. Templates do not run: they are no guests."""
    if row.get("type") in ("qemu", "lxc") and not rows.number(row.get("template")):
        labels = {"vmid": rows.text(row, "vmid")}
        names = {"name": "name", "node": "node", "type": "type", "pool": "pool", "tags": "tags"}
        info = {label: rows.text(row, name) for label, name in names.items()}
        yield api.Reading("proxmox_guest_info", 1, {**labels, **info}, api.Kind.INFO)
        yield api.Reading("proxmox_guest_up", row.get("status") == "running", labels)
        yield from rows.readings(row, GUEST, labels)


def _storage(row: Mapping[str, Any]) -> Iterator[api.Reading]:
    """A shared one is listed by each node: told once for each, as they may disagree."""
    if row.get("type") == "storage":
        labels = {"node": rows.text(row, "node"), "storage": rows.text(row, "storage")}
        info = {"type": rows.text(row, "plugintype"), "shared": rows.text(row, "shared")}
        yield api.Reading("proxmox_storage_info", 1, {**labels, **info}, api.Kind.INFO)
        yield api.Reading("proxmox_storage_up", row.get("status") == "available", labels)
        yield from rows.readings(row, STORAGE, labels)
