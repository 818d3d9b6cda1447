"""Rows to other rows, where a menu does not show what people want to know. Pure functions, tolerant of anything."""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Callable

from poller.collectors.routeros.families.family import COUNT, Row, Rows

Reshape = Callable[[Rows], Rows]


def sensors(rows: Rows) -> Rows:
    """Version 7 shows a row for each sensor, version 6 one row with all of them: always the latter."""
    named = {row["name"]: row["value"] for row in rows if "name" in row and "value" in row}
    return [named] if named else [row for row in rows if "name" not in row]


def counted(label: str, source: str = "", strip: Callable[[str], str] = str) -> Reshape:
    """How many rows there are for each value of a property."""

    def count(rows: Rows) -> Rows:
        found = Counter(strip(row[source or label]) for row in rows if row.get(source or label))
        return [{label: value, COUNT: str(count)} for value, count in found.items()]

    return count


def tagged(**texts: str) -> Reshape:
    """The same rows with these properties."""
    return lambda rows: [{**row, **texts} for row in rows]


def having(name: str, *values: str) -> Reshape:
    """Rows with the property, or with one of these values of it."""
    return lambda rows: [row for row in rows if name in row and (not values or row[name] in values)]


def by_name(rows: Rows, more: Rows) -> Rows:
    """Each row with what a second command says of the same name."""
    found = {row["name"]: row for row in more if "name" in row}
    if not found and len(rows) == len(
        more
    ):  # some leave the name out: then they answer in our order
        return [{**row, **other} for row, other in zip(rows, more, strict=True)]
    return [{**row, **found.get(row.get("name", ""), {})} for row in rows]


def used(rows: Rows, taken: Rows) -> Rows:
    """Pools with the number of addresses taken from them."""
    count = Counter(row.get("pool", "") for row in taken)
    return [{**row, "used": row.get("used") or str(count[row.get("name", "")])} for row in rows]


def sized(rows: Rows) -> Rows:
    """Pools with their size; most versions do not say it."""
    return [row if row.get("total") else {**row, "total": str(_size(row))} for row in rows]


def _size(pool: Row) -> int:
    """An IPv4 pool has ranges of addresses, an IPv6 pool a prefix that is given away in smaller ones."""
    try:
        if "prefix" in pool:
            given = min(int(pool["prefix-length"]), ipaddress.IPV6LENGTH)
            return 1 << max(0, given - ipaddress.ip_network(pool["prefix"]).prefixlen)
        return sum(
            _addresses(part.strip()) for part in pool.get("ranges", "").split(",") if part.strip()
        )
    except (ValueError, TypeError, KeyError):
        return 0


def _addresses(part: str) -> int:
    first, dash, last = part.partition("-")
    if not dash:
        return ipaddress.ip_network(part, strict=False).num_addresses
    return max(
        0, int(ipaddress.ip_address(last.strip())) - int(ipaddress.ip_address(first.strip())) + 1
    )


def host(address: str) -> str:
    """An address without its port: `10.0.0.1:443`, `[2001:db8::1]:443`."""
    if address.startswith("["):
        return address[1:].partition("]")[0]
    return address.partition(":")[0] if address.count(":") == 1 else address


def bridge_vlans(rows: Rows) -> Rows:
    """Bridge VLANs have no name of their own."""
    return [
        {**row, "name": f"{row.get('bridge', '')}-vlan-{row.get('vlan-ids', '')}"} for row in rows
    ]


def newer(current: str, newest: str) -> Reshape:
    """Is there another version than the one that runs? As the property `newer`."""
    return lambda rows: [
        {**row, "newer": _differ(row.get(current), row.get(newest))} for row in rows
    ]


def _differ(current: str | None, newest: str | None) -> str:
    return "true" if current and newest and current != newest else "false"


def cache(rows: Rows) -> Rows:
    """The DNS cache: a row for its size, and one for what of it is used."""
    return [
        {"property": name.replace("-", "_"), "value": row[name]}
        for row in rows
        for name in ("cache-size", "cache-used")
        if name in row
    ]


def watched(rows: Rows) -> Rows:
    """Netwatch entries that are switched on. Before 7.14 they have no name: the host stands for it."""
    return [
        {**row, "name": row.get("name") or row.get("host", "")}
        for row in rows
        if row.get("disabled") != "true"
    ]


def clean(rows: Rows) -> Rows:
    """Neighbours pad what they say of themselves with zero bytes."""
    return [{name: text.partition("\0")[0].strip() for name, text in row.items()} for row in rows]
