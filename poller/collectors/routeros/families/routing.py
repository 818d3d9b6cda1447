"""Where packets go: routes, BGP, BFD, the routing processes; and netwatch, which watches whether they arrive."""

from __future__ import annotations

from poller.collectors.routeros import value_parser
from poller.collectors.routeros.families import row_transforms
from poller.collectors.routeros.families.family import (
    COUNT,
    Ask,
    Family,
    Info,
    Metric,
    Table,
    counter,
    flag,
    same,
)


def _routes(path: str, suffix: str) -> tuple[Ask, ...]:
    """Counted by the router: a table of routes may have a million rows."""
    total = Metric(COUNT, f"routes_total_routes{suffix}", "Routes there are")
    of_kind = Metric(COUNT, f"routes_protocol_count{suffix}", "Routes of the kind")
    counts = [Ask(path, (Table(metrics=(total,), made=(COUNT,)),), count=True)]
    for kind in ("connect", "dynamic", "static", "bgp", "ospf"):
        table = Table(
            same("protocol"),
            (of_kind,),
            reshape=row_transforms.tagged(protocol=kind),
            made=(COUNT, "protocol"),
        )
        counts.append(Ask(path, (table,), queries=(f"{kind}=yes",), count=True))
    return tuple(counts)


ROUTES = Family(
    "routes",
    "how many routes there are, of which kind",
    (*_routes("/ip/route", ""), *_routes("/ipv6/route", "_ipv6")),
    every_s=300,
)

_BGP = Table(
    labels=same("name"),
    metrics=(
        counter("remote.messages", "bgp_remote_messages", "Messages received"),
        counter("local.messages", "bgp_local_messages", "Messages sent"),
        counter("remote.bytes", "bgp_remote_bytes", "Bytes received"),
        counter("local.bytes", "bgp_local_bytes", "Bytes sent"),
        Metric("prefix-count", "bgp_prefix_count", "Prefixes received"),
        flag("established", "bgp_established", "Is the session established?"),
        Metric(
            "uptime",
            "bgp_uptime",
            "Milliseconds since it was established",
            parse=value_parser.milliseconds,
            absent=0,
        ),
    ),
    info=Info(
        "bgp_sessions_info",
        "A BGP session",
        same("remote.address", "remote.as", "local.as", "remote.afi", "local.afi"),
    ),
)

#: Version 6 has peers, version 7 sessions.
_BGP_PEER = Table(
    labels=_BGP.labels,
    metrics=(
        counter("updates-received", "bgp_updates_received", "Updates received"),
        counter("updates-sent", "bgp_updates_sent", "Updates sent"),
        Metric("prefix-count", "bgp_prefix_count", "Prefixes received"),
        Metric(
            "state",
            "bgp_established",
            "Is the session established? 1 yes, 0 no",
            parse=value_parser.is_("established"),
        ),
        Metric(
            "uptime",
            "bgp_uptime",
            "Milliseconds since it was established",
            parse=value_parser.milliseconds,
            absent=0,
        ),
    ),
    info=Info(
        "bgp_sessions_info",
        "A BGP session",
        {"remote_address": "remote-address", "remote_as": "remote-as", "local_as": "local-as"},
    ),
)

BGP = Family(
    "bgp",
    "BGP sessions",
    (Ask("/routing/bgp/session", (_BGP,)), Ask("/routing/bgp/peer", (_BGP_PEER,))),
)

_BFD = Table(
    labels=same("local-address", "remote-address", "interface"),
    metrics=(
        flag("up", "bfd_up", "Is the session up?"),
        Metric("uptime", "bfd_uptime", "Milliseconds since it came up", parse=value_parser.milliseconds, absent=0),
        Metric("multiplier", "bfd_multiplier", "Missed packets that end the session"),
        Metric("hold-time", "bfd_hold_time", "Milliseconds without a packet that end the session",
               parse=value_parser.milliseconds),
        counter("packets-rx", "bfd_rx_packet", "Control packets received"),
        counter("packets-tx", "bfd_tx_packet", "Control packets sent"),
        counter("state-changes", "bfd_state_change", "Times the state changed"),
        Metric("actual-tx-interval", "bfd_tx_interval", "Milliseconds between packets sent",
               parse=value_parser.milliseconds),
        Metric("desired-tx-interval", "bfd_tx_interval_desired", "Milliseconds between packets that both sides want",
               parse=value_parser.milliseconds),
    ),
)  # fmt: skip

BFD = Family(
    "bfd",
    "BFD sessions",
    (
        Ask("/routing/bfd/session", (_BFD,)),
        Ask("/routing/bfd/neighbor", (_BFD,), called={"remote-address": "address"}),
    ),
)

ROUTING_STATS = Family(
    "routing_stats",
    "memory and time of the routing processes",
    (
        Ask(
            "/routing/stats/process",
            (
                Table(
                    labels=same("tasks"),
                    metrics=(
                        Metric("private-mem-blocks", "routing_stats_private_mem", "Memory of its own, in bytes",
                               parse=value_parser.size),
                        Metric("shared-mem-blocks", "routing_stats_shared_mem", "Memory it shares, in bytes",
                               parse=value_parser.size),
                        counter("kernel-time", "routing_stats_kernel_time", "Seconds in the kernel", value_parser.seconds),
                        counter("process-time", "routing_stats_process_time", "Seconds of work", value_parser.seconds),
                        Metric("max-busy", "routing_stats_max_busy", "Longest time busy, in seconds",
                               parse=value_parser.seconds),
                        Metric("max-calc", "routing_stats_max_calc", "Longest calculation, in seconds",
                               parse=value_parser.seconds),
                    ),
                    info=Info("routing_stats_processes_info", "A routing process", same("id", "pid")),
                ),
            ),
        ),
    ),
)  # fmt: skip


def _probe(
    property_: str, name: str, help_: str, parse: value_parser.Parse = value_parser.number
) -> Metric:
    return Metric(property_, f"netwatch_{name}", help_, parse=parse)


NETWATCH = Family(
    "netwatch",
    "hosts the router watches",
    (
        Ask(
            "/tool/netwatch",
            (
                Table(
                    labels=same("name", "type"),
                    metrics=(
                        _probe("status", "status", "Does the host answer? 1 yes, 0 no", value_parser.is_("up")),
                        _probe("done-tests", "done_tests", "Tests done"),
                        _probe("failed-tests", "failed_tests", "Tests that failed"),
                        _probe("loss-count", "icmp_loss_count", "Packets lost in the last test"),
                        _probe("loss-percent", "icmp_loss_percent", "Packets lost in the last test, in percent",
                               value_parser.quantity),
                        _probe("rtt-avg", "icmp_rtt_avg_ms", "Mean round trip in ms", value_parser.milliseconds),
                        _probe("rtt-min", "icmp_rtt_min_ms", "Shortest round trip in ms", value_parser.milliseconds),
                        _probe("rtt-max", "icmp_rtt_max_ms", "Longest round trip in ms", value_parser.milliseconds),
                        _probe("rtt-jitter", "icmp_rtt_jitter_ms", "Longest minus shortest, in ms",
                               value_parser.milliseconds),
                        _probe("rtt-stdev", "icmp_rtt_stdev_ms", "Standard deviation of round trips in ms",
                               value_parser.milliseconds),
                        _probe("tcp-connect-time", "tcp_connect_time_ms", "Time to connect in ms",
                               value_parser.milliseconds),
                        _probe("http-status-code", "http_status_code", "Status of the answer"),
                        _probe("http-resp-time", "http_resp_time", "Time to the answer in ms", value_parser.milliseconds),
                    ),
                    info=Info(
                        "netwatch_info",
                        "A watched host",
                        same("host", "timeout", "interval", "since", "comment"),
                    ),
                    reshape=row_transforms.watched,
                    reads=("disabled",),
                ),
            ),
        ),
    ),
)  # fmt: skip

FAMILIES = (ROUTES, BGP, BFD, ROUTING_STATS, NETWATCH)
