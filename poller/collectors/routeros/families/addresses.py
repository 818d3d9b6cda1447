"""Families about addresses: DHCP, pools, DNS, neighbours, kid control."""

from __future__ import annotations

from poller.collectors.routeros.families import row_transforms
from poller.collectors.routeros.families.family import (
    COUNT,
    DHCP_NAME,
    Family,
    FollowUp,
    Info,
    Menu,
    Table,
    counter,
    flag,
    gauge,
    labels_from,
)
from poller.collectors.routeros.value_parser import bits, kibibytes, seconds

LEASES = Table(
    labels=labels_from("server", "mac-address", "address"),
    metrics=(
        gauge(
            "expires-after",
            "dhcp_lease_expires_after",
            "Seconds until the lease ends; 0: never",
            seconds,
            absent=0,
        ),
    ),
    info=Info(
        "dhcp_lease_info",
        "An active lease",
        labels_from("active-address", "host-name", "comment", "client-id", "active-mac-address"),
    ),
)

_PER_SERVER = Table(
    labels=labels_from("server"),
    metrics=(gauge(COUNT, "dhcp_lease_active_count", "Active leases of the server"),),
    transform=row_transforms.count_by("server"),
    computed=(COUNT,),
)

#: Only bound leases: a router stores thousands of others.
DHCP = Family(
    "dhcp",
    "active leases, and their number per server",
    (Menu("/ip/dhcp-server/lease", (_PER_SERVER, LEASES), queries=("status=bound",)),),
)


def _pools(path: str, suffix: str) -> Menu:
    table = Table(
        labels={"pool": "name"},
        metrics=(
            gauge("used", f"ip_pool_used{suffix}", "Addresses taken from the pool"),
            gauge("total", f"ip_pool_total{suffix}", "Addresses of the pool"),
        ),
        transform=row_transforms.add_pool_size,
        transform_inputs=("ranges", "prefix", "prefix-length"),
    )
    used = FollowUp(f"{path}/used", "print", row_transforms.add_pool_usage, properties=("pool",))
    return Menu(path, (table,), follow_up=used)


POOLS = Family(
    "pools", "how full address pools are", (_pools("/ip/pool", ""), _pools("/ipv6/pool", "_ipv6"))
)

_DNS = Table(
    labels=labels_from("property"),
    metrics=(
        gauge(
            "value", "dns_info", "Size of the cache, and what of it is used, in bytes", kibibytes
        ),
    ),
    transform=row_transforms.dns_cache_rows,
    transform_inputs=("cache-size", "cache-used"),
    computed=("property", "value"),
)

DNS = Family("dns", "how full the DNS cache is", (Menu("/ip/dns", (_DNS,)),))

_NEIGHBORS = Table(
    labels=labels_from("interface", "mac-address"),
    info=Info(
        "neighbor_info", "A device that announces itself", labels_from("address", "identity")
    ),
    transform=row_transforms.strip_zero_bytes,
)

_IPV6_NEIGHBORS = Table(
    labels=labels_from("interface", "address"),
    info=Info(
        "ipv6_neighbor_info",
        "A reachable IPv6 neighbour",
        labels_from("mac-address", "status", "comment"),
    ),
    transform=row_transforms.strip_zero_bytes,
)

NEIGHBORS = Family(
    "neighbors",
    "devices next to the router",
    (
        Menu("/ip/neighbor", (_NEIGHBORS,)),
        Menu("/ipv6/neighbor", (_IPV6_NEIGHBORS,), queries=("status=reachable",)),
    ),
    every_s=300,
)

_KID_CONTROL = Table(
    labels=labels_from("name", "mac-address"),
    metrics=(
        counter("bytes-down", "kid_control_device_bytes_down", "Bytes received"),
        counter("bytes-up", "kid_control_device_bytes_up", "Bytes sent"),
        gauge("rate-down", "kid_control_device_rate_down", "Bits received per second", bits),
        gauge("rate-up", "kid_control_device_rate_up", "Bits sent per second", bits),
        gauge("idle-time", "kid_control_device_idle_time", "Seconds of silence", seconds, absent=0),
        flag("blocked", "kid_control_device_blocked", "Is it blocked?"),
        flag("limited", "kid_control_device_limited", "Is it slowed down?"),
        flag("inactive", "kid_control_device_inactive", "Is it away?"),
    ),
    info=Info(
        "kid_control_device_info",
        "A device under kid control",
        labels_from("user", "ip-address", "disabled", DHCP_NAME),
    ),
    computed=(DHCP_NAME,),
)

KID_CONTROL = Family(
    "kid_control",
    "devices under kid control",
    (Menu("/ip/kid-control/device", (_KID_CONTROL,)),),
)

FAMILIES = (DHCP, POOLS, DNS, NEIGHBORS, KID_CONTROL)
