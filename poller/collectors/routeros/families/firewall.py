"""What passes: connections, firewall rules, address lists, queues."""

from __future__ import annotations

from poller.collectors.routeros import value_parser
from poller.collectors.routeros.families import row_transforms
from poller.collectors.routeros.families.family import (
    COUNT,
    DHCP_NAME,
    Ask,
    Family,
    Info,
    Metric,
    Table,
    counter,
    same,
)

_ALL_CONNECTIONS = Table(
    metrics=(Metric(COUNT, "ip_connections_total", "Connections the router follows"),),
    made=(COUNT,),
    adds_up=True,
)


def _connections(version: int) -> Ask:
    name, path = f"ipv{version}_connections_total", "/ip" if version == 4 else "/ipv6"
    table = Table(
        metrics=(Metric(COUNT, name, f"IPv{version} connections the router follows"),),
        made=(COUNT,),
    )
    return Ask(f"{path}/firewall/connection", (_ALL_CONNECTIONS, table), count=True)


CONNECTIONS = Family(
    "connections", "how many connections the router follows", (_connections(4), _connections(6))
)

_PER_SOURCE = Table(
    labels=same("src-address"),
    metrics=(Metric(COUNT, "connection_stats", "Connections from the address"),),
    info=Info("connection_stats_info", "Who has the address", same(DHCP_NAME)),
    reshape=row_transforms.counted("src-address", strip=row_transforms.host),
    made=(COUNT, DHCP_NAME),
    adds_up=True,
)

CONNECTION_STATS = Family(
    "connection_stats",
    "how many connections each address has opened",
    (
        Ask("/ip/firewall/connection", (_PER_SOURCE,)),
        Ask("/ipv6/firewall/connection", (_PER_SOURCE,)),
    ),
    every_s=300,
)


def _rules(path: str, menu: str, suffix: str) -> Ask:
    """Rules that look alike are added up: a router names them only by where they stand, and that changes."""
    name = f"firewall_{menu}{suffix}"
    table = Table(
        labels=same("chain", "action", "comment", "out-interface", "protocol", "log"),
        metrics=(
            counter("bytes", name, "Bytes that matched the rule"),
            counter("packets", f"{name}_packets", "Packets that matched the rule"),
        ),
        adds_up=True,
    )
    return Ask(f"{path}/firewall/{menu}", (table,), words=("stats",))


_MENUS = ("filter", "raw", "nat", "mangle")

FIREWALL = Family(
    "firewall",
    "bytes and packets that matched each rule",
    (
        *(_rules("/ip", menu, "") for menu in _MENUS),
        *(_rules("/ipv6", menu, "_ipv6") for menu in _MENUS),
    ),
)


def _list_counts(path: str, suffix: str) -> tuple[Ask, ...]:
    table = Table(
        labels=same("count-type"),
        metrics=(
            Metric(COUNT, f"firewall_address_list_all_count{suffix}", "Addresses in all lists"),
        ),
        made=(COUNT, "count-type"),
    )

    def counting(kind: str, *queries: str) -> Ask:
        rows = Table(
            table.labels,
            table.metrics,
            reshape=row_transforms.tagged(**{"count-type": kind}),
            made=table.made,
        )
        return Ask(path, (rows,), queries=queries, count=True)

    return (counting("total"), counting("dynamic", "dynamic=yes"), counting("static", "dynamic=no"))


def _list_entries(path: str, suffix: str) -> Ask:
    entries = Table(
        labels=same("list", "address"),
        metrics=(
            Metric("timeout", f"firewall_address_list{suffix}", "Milliseconds until the entry goes; 0: it stays",
                   parse=value_parser.milliseconds, absent=0),
        ),
        info=Info(f"firewall_address_list{suffix}_info", "An entry of a list", same("dynamic", "disabled", "comment")),
    )  # fmt: skip
    counts = Table(
        labels=same("list"),
        metrics=(
            Metric(COUNT, f"firewall_address_list_selected_count{suffix}", "Addresses in the list"),
        ),
        reshape=row_transforms.counted("list"),
        made=(COUNT,),
    )
    return Ask(path, (entries, counts), wanted=("list", "address_lists"))


_LISTS, _LISTS_IPV6 = "/ip/firewall/address-list", "/ipv6/firewall/address-list"

ADDRESS_LISTS = Family(
    "address_lists",
    "how many addresses are in lists; the entries of those named by the option `address_lists`",
    (
        *_list_counts(_LISTS, ""),
        _list_entries(_LISTS, ""),
        *_list_counts(_LISTS_IPV6, "_ipv6"),
        _list_entries(_LISTS_IPV6, "_ipv6"),
    ),
    every_s=300,
)

_TREE = Table(
    labels=same("name"),
    metrics=(
        Metric("rate", "queue_tree_rates", "Bits per second that pass", parse=value_parser.bits),
        counter("bytes", "queue_tree_bytes", "Bytes that passed"),
        Metric("queued-bytes", "queue_tree_queued_bytes", "Bytes that wait"),
        counter("dropped", "queue_tree_dropped", "Packets dropped"),
    ),
    info=Info(
        "queue_tree_info",
        "A queue of the tree",
        same("parent", "packet-mark", "limit-at", "max-limit", "priority", "disabled"),
    ),
)


def _both(
    property_: str, names: tuple[str, str], help_: str, made: value_parser.Parse, counts: bool
) -> tuple[Metric, ...]:
    """A property of a simple queue: `upload/download`."""
    metric = counter if counts else Metric
    return tuple(
        metric(
            property_,
            f"queue_simple_{name}",
            f"{help_}, {way}",
            parse=value_parser.part(at, "/", made),
        )
        for at, (name, way) in enumerate(zip(names, ("upload", "download"), strict=True))
    )


_SIMPLE = Table(
    labels=same("name"),
    metrics=(
        *_both("rate", ("rates_upload", "rates_download"), "Bits per second that pass", value_parser.bits, counts=False),
        *_both("bytes", ("bytes_upload", "bytes_download"), "Bytes that passed", value_parser.number, counts=True),
        *_both("queued-bytes", ("queued_bytes_upload", "queued_bytes_download"), "Bytes that wait",
               value_parser.number, counts=False),
        *_both("dropped", ("dropped_upload", "dropped_download"), "Packets dropped", value_parser.number, counts=True),
    ),
    info=Info(
        "queue_simple_info",
        "A simple queue",
        same("parent", "packet-marks", "limit-at", "max-limit", "priority", "disabled"),
    ),
)  # fmt: skip

QUEUES = Family(
    "queues",
    "what passes and waits in queues",
    (Ask("/queue/tree", (_TREE,)), Ask("/queue/simple", (_SIMPLE,))),
)

FAMILIES = (CONNECTIONS, CONNECTION_STATS, FIREWALL, ADDRESS_LISTS, QUEUES)
