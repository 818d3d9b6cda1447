"""Families about routing: routes, BGP, BFD, the routing processes, and netwatch."""

from __future__ import annotations

from poller.collectors.routeros.families import row_transforms
from poller.collectors.routeros.families.family import (
    COUNT,
    Family,
    Info,
    Menu,
    Metric,
    Table,
    counter,
    flag,
    gauge,
    labels_from,
)
from poller.collectors.routeros.value_parser import (
    Parse,
    is_,
    milliseconds,
    number,
    quantity,
    seconds,
    size,
)


def _routes(path: str, suffix: str) -> tuple[Menu, ...]:
    """Let the router count: a routing table may have a million rows."""
    total = gauge(COUNT, f"routes_total_routes{suffix}", "Routes there are")
    per_kind = gauge(COUNT, f"routes_protocol_count{suffix}", "Routes of the kind")
    menus = [Menu(path, (Table(metrics=(total,), computed=(COUNT,)),), count_only=True)]
    for kind in ("connect", "dynamic", "static", "bgp", "ospf"):
        table = Table(
            labels=labels_from("protocol"),
            metrics=(per_kind,),
            transform=row_transforms.add_properties(protocol=kind),
            computed=(COUNT, "protocol"),
        )
        menus.append(Menu(path, (table,), queries=(f"{kind}=yes",), count_only=True))
    return tuple(menus)


ROUTES = Family(
    "routes",
    "number of routes by kind",
    (*_routes("/ip/route", ""), *_routes("/ipv6/route", "_ipv6")),
    every_s=300,
)

_BGP_PREFIXES = gauge("prefix-count", "bgp_prefix_count", "Prefixes received")
_BGP_UPTIME = gauge(
    "uptime", "bgp_uptime", "Milliseconds since it was established", milliseconds, absent=0
)

#: Version 7 has sessions.
_BGP_SESSION = Table(
    labels=labels_from("name"),
    metrics=(
        counter("remote.messages", "bgp_remote_messages", "Messages received"),
        counter("local.messages", "bgp_local_messages", "Messages sent"),
        counter("remote.bytes", "bgp_remote_bytes", "Bytes received"),
        counter("local.bytes", "bgp_local_bytes", "Bytes sent"),
        _BGP_PREFIXES,
        flag("established", "bgp_established", "Is the session established?"),
        _BGP_UPTIME,
    ),
    info=Info(
        "bgp_sessions_info",
        "A BGP session",
        labels_from("remote.address", "remote.as", "local.as", "remote.afi", "local.afi"),
    ),
)

#: Version 6 has peers.
_BGP_PEER = Table(
    labels=labels_from("name"),
    metrics=(
        counter("updates-received", "bgp_updates_received", "Updates received"),
        counter("updates-sent", "bgp_updates_sent", "Updates sent"),
        _BGP_PREFIXES,
        gauge(
            "state",
            "bgp_established",
            "Is the session established? 1 yes, 0 no",
            is_("established"),
        ),
        _BGP_UPTIME,
    ),
    info=Info(
        "bgp_sessions_info",
        "A BGP session",
        labels_from("remote-address", "remote-as", "local-as"),
    ),
)

BGP = Family(
    "bgp",
    "BGP sessions",
    (Menu("/routing/bgp/session", (_BGP_SESSION,)), Menu("/routing/bgp/peer", (_BGP_PEER,))),
)

_BFD = Table(
    labels=labels_from("local-address", "remote-address", "interface"),
    metrics=(
        flag("up", "bfd_up", "Is the session up?"),
        gauge("uptime", "bfd_uptime", "Milliseconds since it came up", milliseconds, absent=0),
        gauge("multiplier", "bfd_multiplier", "Missed packets that end the session"),
        gauge(
            "hold-time",
            "bfd_hold_time",
            "Milliseconds without a packet that end the session",
            milliseconds,
        ),
        counter("packets-rx", "bfd_rx_packet", "Control packets received"),
        counter("packets-tx", "bfd_tx_packet", "Control packets sent"),
        counter("state-changes", "bfd_state_change", "Times the state changed"),
        gauge(
            "actual-tx-interval",
            "bfd_tx_interval",
            "Milliseconds between packets sent",
            milliseconds,
        ),
        gauge(
            "desired-tx-interval",
            "bfd_tx_interval_desired",
            "Milliseconds between packets that both sides want",
            milliseconds,
        ),
    ),
)

BFD = Family(
    "bfd",
    "BFD sessions",
    (
        Menu("/routing/bfd/session", (_BFD,)),
        Menu("/routing/bfd/neighbor", (_BFD,), renames={"remote-address": "address"}),
    ),
)

_PROCESSES = Table(
    labels=labels_from("tasks"),
    metrics=(
        gauge(
            "private-mem-blocks", "routing_stats_private_mem", "Memory of its own, in bytes", size
        ),
        gauge("shared-mem-blocks", "routing_stats_shared_mem", "Memory it shares, in bytes", size),
        counter("kernel-time", "routing_stats_kernel_time", "Seconds in the kernel", seconds),
        counter("process-time", "routing_stats_process_time", "Seconds of work", seconds),
        gauge("max-busy", "routing_stats_max_busy", "Longest time busy, in seconds", seconds),
        gauge("max-calc", "routing_stats_max_calc", "Longest calculation, in seconds", seconds),
    ),
    info=Info("routing_stats_processes_info", "A routing process", labels_from("id", "pid")),
)

ROUTING_STATS = Family(
    "routing_stats",
    "memory and time of the routing processes",
    (Menu("/routing/stats/process", (_PROCESSES,)),),
)


def _probe(property_: str, name: str, help_: str, parse: Parse = milliseconds) -> Metric:
    return gauge(property_, f"netwatch_{name}", help_, parse)


_NETWATCH = Table(
    labels=labels_from("name", "type"),
    metrics=(
        _probe("status", "status", "Does the host answer? 1 yes, 0 no", is_("up")),
        _probe("done-tests", "done_tests", "Tests done", number),
        _probe("failed-tests", "failed_tests", "Tests that failed", number),
        _probe("loss-count", "icmp_loss_count", "Packets lost in the last test", number),
        _probe(
            "loss-percent",
            "icmp_loss_percent",
            "Packets lost in the last test, in percent",
            quantity,
        ),
        _probe("rtt-avg", "icmp_rtt_avg_ms", "Mean round trip in ms"),
        _probe("rtt-min", "icmp_rtt_min_ms", "Shortest round trip in ms"),
        _probe("rtt-max", "icmp_rtt_max_ms", "Longest round trip in ms"),
        _probe("rtt-jitter", "icmp_rtt_jitter_ms", "Longest minus shortest, in ms"),
        _probe("rtt-stdev", "icmp_rtt_stdev_ms", "Standard deviation of round trips in ms"),
        _probe("tcp-connect-time", "tcp_connect_time_ms", "Time to connect in ms"),
        _probe("http-status-code", "http_status_code", "Status of the answer", number),
        _probe("http-resp-time", "http_resp_time", "Time to the answer in ms"),
    ),
    info=Info(
        "netwatch_info",
        "A watched host",
        labels_from("host", "timeout", "interval", "since", "comment"),
    ),
    transform=row_transforms.enabled_netwatch,
    transform_inputs=("disabled",),
)

NETWATCH = Family("netwatch", "hosts the router watches", (Menu("/tool/netwatch", (_NETWATCH,)),))

FAMILIES = (ROUTES, BGP, BFD, ROUTING_STATS, NETWATCH)
