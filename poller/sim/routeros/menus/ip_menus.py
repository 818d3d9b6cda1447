"""Addresses: /ip/address, DHCP leases, pools, DNS, cloud, neighbours; also for IPv6."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Sequence
from typing import NamedTuple

from poller.sim.hardware_model import Chassis, Kind
from poller.sim.routeros.menu_tables import (
    Fixed,
    Scene,
    Table,
    dice,
    flag,
    mac,
    number,
    once,
    text,
    uptime,
)

_LEASE_SECONDS = 600


class Address(NamedTuple):
    number: int
    address: str
    network: str
    interface: str


def _addresses(chassis: Chassis) -> Sequence[Address]:
    home = next(
        (port.name for port in chassis.ports if port.kind is Kind.BRIDGE), chassis.ports[0].name
    )
    return [
        Address(1, "10.20.0.1/16", "10.20.0.0", home),
        Address(2, "192.0.2.1/24", "192.0.2.0", chassis.ports[-1].name),
    ]


ADDRESS = Table(
    "/ip/address",
    _addresses,
    {
        ".id": number,
        "address": lambda row: row.address,
        "network": lambda row: row.network,
        "interface": lambda row: row.interface,
        "actual-interface": lambda row: row.interface,
        "invalid": text("false"),
        "dynamic": text("false"),
        "disabled": text("false"),
    },
    accepts={
        "address": True,
        "interface": True,
        "comment": False,
        "disabled": False,
        "network": False,
    },
)


# DHCP


class Lease(NamedTuple):
    number: int
    host: str
    comment: str
    server: str
    bound: bool
    dynamic: bool

    @property
    def address(self) -> str:
        return f"10.20.{self.number // 200}.{self.number % 200 + 10}"

    @property
    def mac(self) -> str:
        return mac(client_mac(self.number))


def client_mac(place: int) -> int:
    """Return the MAC address of the n-th client of a router, for DHCP and wireless menus."""
    return 0x02_50_00_00_00_00 + place


_COMMENTS = ("", "", "printer of the front office", "Büro Küche", "")


def _leases(chassis: Chassis) -> Sequence[Lease]:
    luck = dice(chassis, "lease")
    made = []
    for n in range(1, chassis.model.setup.leases + 1):
        host = "" if n % 6 == 5 else f"{luck.choice(('desk', 'phone', 'camera', 'printer'))}-{n}"
        server = "guests" if n % 4 == 3 else "office"
        made.append(Lease(n, host, _COMMENTS[n % 5], server, n % 7 != 6, n % 5 not in (2, 3)))
    return made


def _while_bound(value: Callable[[Lease], str]) -> Fixed:
    return lambda lease: value(lease) if lease.bound else None


def _expires(scene: Scene, lease: Lease) -> str | None:
    """Return the time left of a lease, which is renewed at half time."""
    passed = (scene.now + 37 * lease.number) % (_LEASE_SECONDS / 2)
    return uptime(_LEASE_SECONDS - passed) if lease.bound else None


LEASE = Table(
    "/ip/dhcp-server/lease",
    _leases,
    {
        ".id": number,
        "address": lambda lease: lease.address,
        "mac-address": lambda lease: lease.mac,
        "client-id": lambda lease: f"1:{lease.mac.lower()}" if lease.number % 3 else None,
        "address-lists": text(""),
        "server": lambda lease: lease.server,
        "dhcp-option": text(""),
        "status": lambda lease: "bound" if lease.bound else "waiting",
        "active-address": _while_bound(lambda lease: lease.address),
        "active-mac-address": _while_bound(lambda lease: lease.mac),
        "active-server": _while_bound(lambda lease: lease.server),
        "host-name": lambda lease: lease.host or None,
        "radius": text("false"),
        "dynamic": lambda lease: flag(lease.dynamic),
        "blocked": text("false"),
        "disabled": text("false"),
        "comment": lambda lease: lease.comment or None,
    },
    {
        "expires-after": _expires,
        "last-seen": lambda scene, lease: uptime((scene.now + 37 * lease.number) % 300),
    },
    flags={
        "active": lambda scene, lease: lease.bound,
        "dynamic": lambda scene, lease: lease.dynamic,
    },
)


# Pools


class Pool(NamedTuple):
    number: int
    name: str
    ranges: str
    used: int
    chassis: Chassis


def _pools(chassis: Chassis) -> Sequence[Pool]:
    if not chassis.model.setup.leases:
        return []
    bound = [lease for lease in _leases(chassis) if lease.bound]
    office = sum(lease.server == "office" for lease in bound)
    return [
        Pool(1, "office", "10.20.0.10-10.20.1.250", office, chassis),
        Pool(2, "guests", "10.21.0.0/24,10.21.1.7", len(bound) - office, chassis),
        Pool(3, "spare", "10.22.0.1-10.22.0.9", 0, chassis),
    ]


def _total(pool: Pool) -> str | None:
    """Return the number of addresses; only version 7.18 and later have it."""
    if pool.chassis.version < (7, 18):
        return None
    return str(sum(_size(part) for part in pool.ranges.split(",")))


def _size(part: str) -> int:
    first, dash, last = part.partition("-")
    if dash:
        return int(ipaddress.ip_address(last)) - int(ipaddress.ip_address(first)) + 1
    return ipaddress.ip_network(part).num_addresses


POOL = Table(
    "/ip/pool",
    _pools,
    {
        ".id": number,
        "name": lambda pool: pool.name,
        "ranges": lambda pool: pool.ranges,
        "total": _total,
        "used": lambda pool: str(pool.used) if pool.chassis.version >= (7, 18) else None,
    },
)


class Used(NamedTuple):
    number: int
    pool: str
    address: str
    info: str


def _used(chassis: Chassis) -> Sequence[Used]:
    bound = [lease for lease in _leases(chassis) if lease.bound]
    return [Used(lease.number, lease.server, lease.address, lease.mac) for lease in bound]


POOL_USED = Table(
    "/ip/pool/used",
    _used,
    {
        "pool": lambda row: row.pool,
        "address": lambda row: row.address,
        "owner": text("DHCP"),
        "info": lambda row: row.info,
    },
)


def _pools_6(chassis: Chassis) -> Sequence[Used]:
    return [Used(1, "delegated", "2001:db8:20::/48", "")] if chassis.model.setup.leases else []


def _used_6(chassis: Chassis) -> Sequence[Used]:
    return [
        Used(n, "delegated", f"2001:db8:20:{n}::/64", "DHCP")
        for n in range(1, chassis.model.setup.leases // 4 + 1)
    ]


POOL_6 = Table(
    "/ipv6/pool",
    _pools_6,
    {
        ".id": number,
        "name": lambda row: row.pool,
        "prefix": lambda row: row.address,
        "prefix-length": text("64"),
        "dynamic": text("false"),
    },
)
POOL_USED_6 = Table(
    "/ipv6/pool/used",
    _used_6,
    {
        "pool": lambda row: row.pool,
        "prefix": lambda row: row.address,
        "owner": lambda row: row.info,
    },
)

DNS = Table(
    "/ip/dns",
    once,
    {
        "servers": text("192.0.2.53,198.51.100.53"),
        "dynamic-servers": text(""),
        "allow-remote-requests": text("true"),
        "max-udp-packet-size": text("4096"),
        "query-server-timeout": text("2s"),
        "cache-size": text("2048"),
        "cache-max-ttl": text("1w"),
    },
    {"cache-used": lambda scene, _: str(140 + int(scene.now / 60 + scene.mac) % 90)},
)

CLOUD = Table(
    "/ip/cloud",
    once,
    {
        "ddns-enabled": text("true"),
        "ddns-update-interval": text("none"),
        "update-time": text("true"),
    },
    {
        "public-address": lambda scene, _: f"203.0.113.{scene.mac >> 8 & 0x7F}",
        "dns-name": lambda scene, _: f"{scene.mac >> 8 & 0xFFFF_FFFF:08x}.sn.example.net",
        "status": lambda scene, _: "updated",
    },
)


# Neighbours: discovered devices (IPv4), and the neighbour cache (IPv6).


class Neighbor(NamedTuple):
    number: int
    interface: str
    identity: str


def _neighbors(chassis: Chassis) -> Sequence[Neighbor]:
    ports = [port.name for port in chassis.ports if port.up] or [chassis.ports[0].name]
    count = chassis.model.setup.neighbors
    return [Neighbor(n, ports[n % len(ports)], f"sw-{n:02d}") for n in range(1, count + 1)]


def _padded_identity(row: Neighbor) -> str:
    """Return the name of a neighbour; some devices pad theirs with NUL."""
    return row.identity + "\0\0" if row.number == 2 else row.identity


NEIGHBOR = Table(
    "/ip/neighbor",
    _neighbors,
    {
        ".id": number,
        "interface": lambda row: row.interface,
        "address": lambda row: f"10.20.250.{row.number}",
        "mac-address": lambda row: mac(0x02_60_00_00_00_00 + row.number),
        "identity": _padded_identity,
        "platform": text("MikroTik"),
        "version": text("7.18.2 (stable)"),
        "unpack": text("none"),
        "ipv6": text("false"),
        "interface-name": text("bridge1/ether1"),
        "discovered-by": text("cdp,lldp,mndp"),
    },
    {
        "age": lambda scene, row: uptime((scene.now + 11 * row.number) % 60),
        "uptime": lambda scene, row: uptime(scene.uptime / (row.number + 1)),
    },
)

_STATES = ("reachable", "stale", "reachable", "noarp", "delay")

NEIGHBOR_6 = Table(
    "/ipv6/neighbor",
    _neighbors,
    {
        ".id": number,
        "address": lambda row: f"fe80::60ff:fe00:{row.number:x}",
        "interface": lambda row: row.interface,
        "mac-address": lambda row: mac(0x02_60_00_00_00_00 + row.number),
        "router": lambda row: flag(row.number % 2 == 0),
        "status": lambda row: _STATES[row.number % 5],
        "dynamic": text("true"),
        "comment": lambda row: "gateway" if row.number == 2 else None,
    },
)

TABLES = (ADDRESS, LEASE, POOL, POOL_USED, POOL_6, POOL_USED_6, DNS, CLOUD, NEIGHBOR, NEIGHBOR_6)
