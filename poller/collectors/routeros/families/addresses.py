"""Who has which address: DHCP, pools, DNS, neighbours, kid control."""

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
    Then,
    counter,
    flag,
    same,
)

LEASES = Table(
    labels=same("server", "mac-address", "address"),
    metrics=(
        Metric("expires-after", "dhcp_lease_expires_after", "Seconds until the lease ends; 0: never",
               parse=value_parser.seconds, absent=0),
    ),
    info=Info(
        "dhcp_lease_info",
        "An active lease",
        same("active-address", "host-name", "comment", "client-id", "active-mac-address"),
    ),
)  # fmt: skip

_PER_SERVER = Table(
    labels=same("server"),
    metrics=(Metric(COUNT, "dhcp_lease_active_count", "Active leases of the server"),),
    reshape=row_transforms.counted("server"),
    made=(COUNT,),
)

#: Bound ones only: a router keeps thousands of others.
DHCP = Family(
    "dhcp",
    "active leases, and how many each server has",
    (Ask("/ip/dhcp-server/lease", (_PER_SERVER, LEASES), queries=("status=bound",)),),
)


def _pools(suffix: str) -> Table:
    return Table(
        labels={"pool": "name"},
        metrics=(
            Metric("used", f"ip_pool_used{suffix}", "Addresses taken from the pool"),
            Metric("total", f"ip_pool_total{suffix}", "Addresses of the pool"),
        ),
        reshape=row_transforms.sized,
        reads=("ranges", "prefix", "prefix-length"),
    )


def _used(path: str) -> Then:
    return Then(f"{path}/used", "print", row_transforms.used, properties=("pool",))


POOLS = Family(
    "pools",
    "how full address pools are",
    (
        Ask("/ip/pool", (_pools(""),), then=_used("/ip/pool")),
        Ask("/ipv6/pool", (_pools("_ipv6"),), then=_used("/ipv6/pool")),
    ),
)

DNS = Family(
    "dns",
    "how full the DNS cache is",
    (
        Ask(
            "/ip/dns",
            (
                Table(
                    labels=same("property"),
                    metrics=(
                        Metric("value", "dns_info", "Size of the cache, and what of it is used, in bytes",
                               parse=value_parser.kibibytes),
                    ),
                    reshape=row_transforms.cache,
                    reads=("cache-size", "cache-used"),
                    made=("property", "value"),
                ),
            ),
        ),
    ),
)  # fmt: skip

NEIGHBORS = Family(
    "neighbors",
    "devices the router sees beside it",
    (
        Ask(
            "/ip/neighbor",
            (
                Table(
                    labels=same("interface", "mac-address"),
                    info=Info(
                        "neighbor_info",
                        "A device that announces itself",
                        same("address", "identity"),
                    ),
                    reshape=row_transforms.clean,
                ),
            ),
        ),
        Ask(
            "/ipv6/neighbor",
            (
                Table(
                    labels=same("interface", "address"),
                    info=Info(
                        "ipv6_neighbor_info",
                        "A reachable IPv6 neighbour",
                        same("mac-address", "status", "comment"),
                    ),
                    reshape=row_transforms.clean,
                ),
            ),
            queries=("status=reachable",),
        ),
    ),
    every_s=300,
)

KID_CONTROL = Family(
    "kid_control",
    "devices under kid control",
    (
        Ask(
            "/ip/kid-control/device",
            (
                Table(
                    labels=same("name", "mac-address"),
                    metrics=(
                        counter("bytes-down", "kid_control_device_bytes_down", "Bytes received"),
                        counter("bytes-up", "kid_control_device_bytes_up", "Bytes sent"),
                        Metric("rate-down", "kid_control_device_rate_down", "Bits received per second",
                               parse=value_parser.bits),
                        Metric("rate-up", "kid_control_device_rate_up", "Bits sent per second", parse=value_parser.bits),
                        Metric("idle-time", "kid_control_device_idle_time", "Seconds of silence",
                               parse=value_parser.seconds, absent=0),
                        flag("blocked", "kid_control_device_blocked", "Is it blocked?"),
                        flag("limited", "kid_control_device_limited", "Is it slowed down?"),
                        flag("inactive", "kid_control_device_inactive", "Is it away?"),
                    ),
                    info=Info(
                        "kid_control_device_info",
                        "A device under kid control",
                        same("user", "ip-address", "disabled", DHCP_NAME),
                    ),
                    made=(DHCP_NAME,),
                ),
            ),
        ),
    ),
)  # fmt: skip

FAMILIES = (DHCP, POOLS, DNS, NEIGHBORS, KID_CONTROL)
