"""Families about traffic: connections, firewall rules, address lists, queues."""

from __future__ import annotations

from poller.collectors.routeros.families import row_transforms
from poller.collectors.routeros.families.family import (
    COUNT,
    DHCP_NAME,
    Family,
    Info,
    Menu,
    Metric,
    Table,
    counter,
    gauge,
    labels_from,
)
from poller.collectors.routeros.value_parser import Parse, bits, milliseconds, number, part

_ALL_CONNECTIONS = Table(
    metrics=(gauge(COUNT, "ip_connections_total", "Connections the router follows"),),
    computed=(COUNT,),
    sums_rows=True,
)


def _connections(path: str, version: str) -> Menu:
    table = Table(
        metrics=(
            gauge(
                COUNT,
                f"{version.lower()}_connections_total",
                f"{version} connections the router follows",
            ),
        ),
        computed=(COUNT,),
    )
    return Menu(f"{path}/firewall/connection", (_ALL_CONNECTIONS, table), count_only=True)


CONNECTIONS = Family(
    "connections",
    "number of connections that the router tracks",
    (_connections("/ip", "IPv4"), _connections("/ipv6", "IPv6")),
)

_PER_SOURCE = Table(
    labels=labels_from("src-address"),
    metrics=(gauge(COUNT, "connection_stats", "Connections from the address"),),
    info=Info("connection_stats_info", "Who has the address", labels_from(DHCP_NAME)),
    transform=row_transforms.count_by("src-address", strip=row_transforms.without_port),
    computed=(COUNT, DHCP_NAME),
    sums_rows=True,
)

CONNECTION_STATS = Family(
    "connection_stats",
    "number of connections that each address opened",
    (
        Menu("/ip/firewall/connection", (_PER_SOURCE,)),
        Menu("/ipv6/firewall/connection", (_PER_SOURCE,)),
    ),
    every_s=300,
)


def _rules(path: str, menu: str, suffix: str) -> Menu:
    """Add up rules with equal labels: only its position identifies a rule, and positions change."""
    name = f"firewall_{menu}{suffix}"
    table = Table(
        labels=labels_from("chain", "action", "comment", "out-interface", "protocol", "log"),
        metrics=(
            counter("bytes", name, "Bytes that matched the rule"),
            counter("packets", f"{name}_packets", "Packets that matched the rule"),
        ),
        sums_rows=True,
    )
    return Menu(f"{path}/firewall/{menu}", (table,), words=("stats",))


_RULE_MENUS = ("filter", "raw", "nat", "mangle")

FIREWALL = Family(
    "firewall",
    "bytes and packets that matched each rule",
    (
        *(_rules("/ip", menu, "") for menu in _RULE_MENUS),
        *(_rules("/ipv6", menu, "_ipv6") for menu in _RULE_MENUS),
    ),
)


def _list_count(path: str, suffix: str, kind: str, *queries: str) -> Menu:
    name = f"firewall_address_list_all_count{suffix}"
    table = Table(
        labels=labels_from("count-type"),
        metrics=(gauge(COUNT, name, "Addresses in all lists"),),
        transform=row_transforms.add_properties(**{"count-type": kind}),
        computed=(COUNT, "count-type"),
    )
    return Menu(path, (table,), queries=queries, count_only=True)


def _list_entries(path: str, suffix: str) -> Menu:
    name = f"firewall_address_list{suffix}"
    text = "Milliseconds until the entry goes; 0: it stays"
    entries = Table(
        labels=labels_from("list", "address"),
        metrics=(gauge("timeout", name, text, milliseconds, absent=0),),
        info=Info(
            f"{name}_info", "An entry of a list", labels_from("dynamic", "disabled", "comment")
        ),
    )
    count_name = f"firewall_address_list_selected_count{suffix}"
    counts = Table(
        labels=labels_from("list"),
        metrics=(gauge(COUNT, count_name, "Addresses in the list"),),
        transform=row_transforms.count_by("list"),
        computed=(COUNT,),
    )
    return Menu(path, (entries, counts), selected=("list", "address_lists"))


def _address_lists(path: str, suffix: str) -> tuple[Menu, ...]:
    return (
        _list_count(path, suffix, "total"),
        _list_count(path, suffix, "dynamic", "dynamic=yes"),
        _list_count(path, suffix, "static", "dynamic=no"),
        _list_entries(path, suffix),
    )


ADDRESS_LISTS = Family(
    "address_lists",
    "number of addresses in lists; the entries of the lists that the option `address_lists` names",
    (
        *_address_lists("/ip/firewall/address-list", ""),
        *_address_lists("/ipv6/firewall/address-list", "_ipv6"),
    ),
    every_s=300,
)

_TREE = Table(
    labels=labels_from("name"),
    metrics=(
        gauge("rate", "queue_tree_rates", "Bits per second that pass", bits),
        counter("bytes", "queue_tree_bytes", "Bytes that passed"),
        gauge("queued-bytes", "queue_tree_queued_bytes", "Bytes that wait"),
        counter("dropped", "queue_tree_dropped", "Packets dropped"),
    ),
    info=Info(
        "queue_tree_info",
        "A queue of the tree",
        labels_from("parent", "packet-mark", "limit-at", "max-limit", "priority", "disabled"),
    ),
)


def _both_ways(
    property_: str, name: str, help_: str, parse: Parse = number, *, counts: bool = False
) -> tuple[Metric, Metric]:
    """Make two metrics of a simple queue's property, which is written `upload/download`."""
    metric = counter if counts else gauge
    name = f"queue_simple_{name}"
    return (
        metric(property_, f"{name}_upload", f"{help_}, upload", part(0, "/", parse)),
        metric(property_, f"{name}_download", f"{help_}, download", part(1, "/", parse)),
    )


_SIMPLE = Table(
    labels=labels_from("name"),
    metrics=(
        *_both_ways("rate", "rates", "Bits per second that pass", bits),
        *_both_ways("bytes", "bytes", "Bytes that passed", counts=True),
        *_both_ways("queued-bytes", "queued_bytes", "Bytes that wait"),
        *_both_ways("dropped", "dropped", "Packets dropped", counts=True),
    ),
    info=Info(
        "queue_simple_info",
        "A simple queue",
        labels_from("parent", "packet-marks", "limit-at", "max-limit", "priority", "disabled"),
    ),
)

QUEUES = Family(
    "queues",
    "traffic and backlog of queues",
    (Menu("/queue/tree", (_TREE,)), Menu("/queue/simple", (_SIMPLE,))),
)

FAMILIES = (CONNECTIONS, CONNECTION_STATS, FIREWALL, ADDRESS_LISTS, QUEUES)
