"""Transforms the rows of menus before they become metrics. Pure functions that accept any text."""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Callable

from poller.collectors.routeros.families.family import COUNT, FollowUp, Row, Rows

Transform = Callable[[Rows], Rows]


def one_sensor_row(rows: Rows) -> Rows:
    """Join the sensors of version 7, one per row, into the single row of version 6."""
    sensors = {row["name"]: row["value"] for row in rows if "name" in row and "value" in row}
    if sensors:
        return [sensors]
    return [row for row in rows if "name" not in row]


def count_by(label: str, strip: Callable[[str], str] = str) -> Transform:
    """Count the rows for each value of a property."""

    def count(rows: Rows) -> Rows:
        counts = Counter(strip(row[label]) for row in rows if row.get(label))
        return [{label: value, COUNT: str(number)} for value, number in counts.items()]

    return count


def add_properties(**texts: str) -> Transform:
    """Add these properties to each row."""

    def add(rows: Rows) -> Rows:
        return [{**row, **texts} for row in rows]

    return add


def only_where(name: str, *values: str) -> Transform:
    """Select the rows whose property has one of these values."""

    def select(rows: Rows) -> Rows:
        return [row for row in rows if row.get(name) in values]

    return select


def join_by_name(rows: Rows, details: Rows) -> Rows:
    """Add the details of a second command to the rows of the same name.

    Details without names are in the order of the rows.
    """
    by_name = {row["name"]: row for row in details if "name" in row}
    if not by_name and len(rows) == len(details):
        return [{**row, **detail} for row, detail in zip(rows, details, strict=True)]
    return [{**row, **by_name.get(row.get("name", ""), {})} for row in rows]


def monitor(path: str) -> FollowUp:
    """Make the command that adds the current state to all rows of a menu at once."""
    return FollowUp(path, "monitor", join_by_name, names_word="numbers")


def add_pool_usage(pools: Rows, used_addresses: Rows) -> Rows:
    """Add the number of used addresses to each pool."""
    counts = Counter(row.get("pool", "") for row in used_addresses)
    result = []
    for pool in pools:
        used = pool.get("used") or str(counts[pool.get("name", "")])
        result.append({**pool, "used": used})
    return result


def add_pool_size(pools: Rows) -> Rows:
    """Add the size of each pool, which most versions do not report."""
    result: list[Row] = []
    for pool in pools:
        result.append(pool if pool.get("total") else {**pool, "total": str(_pool_size(pool))})
    return result


def _pool_size(pool: Row) -> int:
    """Count the addresses of an IPv4 pool, or the prefixes that an IPv6 pool delegates."""
    try:
        if "prefix" in pool:
            delegated_bits = min(int(pool["prefix-length"]), ipaddress.IPV6LENGTH)
            pool_bits = ipaddress.ip_network(pool["prefix"]).prefixlen
            return 1 << max(0, delegated_bits - pool_bits)
        ranges = (part.strip() for part in pool.get("ranges", "").split(","))
        return sum(_range_size(part) for part in ranges if part)
    except (ValueError, TypeError, KeyError):
        return 0


def _range_size(part: str) -> int:
    first, dash, last = part.partition("-")
    if not dash:
        return ipaddress.ip_network(part, strict=False).num_addresses
    first_number = int(ipaddress.ip_address(first.strip()))
    last_number = int(ipaddress.ip_address(last.strip()))
    return max(0, last_number - first_number + 1)


def without_port(address: str) -> str:
    """Return the host of `10.0.0.1:443` or `[2001:db8::1]:443`."""
    if address.startswith("["):
        return address[1:].partition("]")[0]
    return address.partition(":")[0] if address.count(":") == 1 else address


def name_bridge_vlans(rows: Rows) -> Rows:
    """Give each bridge VLAN a name made of its bridge and VLAN."""
    return [
        {**row, "name": f"{row.get('bridge', '')}-vlan-{row.get('vlan-ids', '')}"} for row in rows
    ]


def add_newer(current: str, newest: str) -> Transform:
    """Add the property `newer`: whether another version than the current one is available."""

    def add(rows: Rows) -> Rows:
        return [{**row, "newer": _differ(row.get(current), row.get(newest))} for row in rows]

    return add


def _differ(current: str | None, newest: str | None) -> str:
    return "true" if current and newest and current != newest else "false"


def dns_cache_rows(rows: Rows) -> Rows:
    """Make one row for the size of the DNS cache and one for its used part."""
    result = []
    for row in rows:
        for name in ("cache-size", "cache-used"):
            if name in row:
                result.append({"property": name.replace("-", "_"), "value": row[name]})
    return result


def enabled_netwatch(rows: Rows) -> Rows:
    """Select the enabled netwatch entries. Before 7.14 an entry has no name: its host counts."""
    result = []
    for row in rows:
        if row.get("disabled") != "true":
            result.append({**row, "name": row.get("name") or row.get("host", "")})
    return result


def strip_zero_bytes(rows: Rows) -> Rows:
    """Strip the zero bytes with which neighbours pad their texts."""
    return [{name: text.partition("\0")[0].strip() for name, text in row.items()} for row in rows]
