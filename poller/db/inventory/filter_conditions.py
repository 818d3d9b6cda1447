"""A filter as SQL: conditions on devices and targets, and the rows that match them.

Addresses are compared here, in Python: they are text, and may be host names. States and error codes
are not in SQL (see service/target_selection.py).
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.engine import Connection, Engine

from poller.db import engine as sql
from poller.db.in_list import in_list
from poller.db.tables import credentials, devices, sites, targets
from poller.domain.inventory.target_filter import AddressMatch, TargetFilter

_ROWS_PER_FETCH = 5_000


class SelectedDevice(NamedTuple):
    id: int
    name: str


class SelectedTarget(NamedTuple):
    id: int
    device_id: int
    device: str
    name: str
    collector: str
    enabled: bool  # the target and its device
    address: str = ""  # of the device


def matching_devices(engine: Engine, wanted: TargetFilter) -> list[SelectedDevice]:
    """Return the devices that match, by name. The keys of targets are left out of account."""
    query = sa.select(devices.c.id, devices.c.name, devices.c.address).order_by(devices.c.name)
    with sql.reading(engine) as conn:
        rows = _matching(conn, query.select_from(WITH_SITE), wanted)
        return [SelectedDevice(row.id, row.name) for row in rows]


def matching_targets(engine: Engine, wanted: TargetFilter) -> list[SelectedTarget]:
    """Return the targets that match, by device and name, without regard to state and code."""
    query = TARGETS.order_by(devices.c.name, targets.c.name)
    query = query.where(*target_conditions(wanted))
    with sql.reading(engine) as conn:
        return [selected_target(row) for row in _matching(conn, query, wanted)]


def count_enabled(engine: Engine, wanted: TargetFilter, most: int) -> int:
    """Count the enabled targets that match the keys of targets, up to `most`."""
    query = (
        sa.select(targets.c.id)
        .join_from(targets, devices, targets.c.device_id == devices.c.id)
        .where(*target_conditions(wanted), targets.c.enabled, devices.c.enabled)
        .limit(most)
    )
    with sql.single_read(engine) as conn:
        counted = sa.select(sa.func.count()).select_from(query.subquery())
        return int(conn.execute(counted).scalar_one())


def targets_by_id(
    engine: Engine, ids: Collection[int], site: str | None = None
) -> list[SelectedTarget]:
    """Return the targets with these ids, of one site or of any. Unknown ids are left out."""
    query = TARGETS.where(in_list(targets.c.id, ids))
    if site is not None:
        query = query.where(sa.func.coalesce(sites.c.name, "") == site)
    with sql.single_read(engine) as conn:
        return [selected_target(row) for row in conn.execute(query)]


def ids_in_site(engine: Engine, ids: Collection[int], site: str) -> set[int]:
    """Return those of the targets whose device is in this site."""
    query = sa.select(targets.c.id).select_from(TARGETS_WITH_SITE)
    is_here = sa.func.coalesce(sites.c.name, "") == site
    with sql.single_read(engine) as conn:
        return set(conn.execute(query.where(in_list(targets.c.id, ids), is_here)).scalars())


def device_conditions(conn: Connection, wanted: TargetFilter) -> list[sa.ColumnElement[bool]]:
    """Return conditions on `devices` and `sites` for every key of a device but its address."""
    conditions: list[sa.ColumnElement[bool]] = []
    if wanted.sites:
        conditions.append(_site_condition(wanted.sites))
    conditions += tag_conditions(conn, wanted)
    conditions += name_conditions(conn, wanted)
    return conditions


def target_conditions(wanted: TargetFilter) -> list[sa.ColumnElement[bool]]:
    """Return conditions on `targets` for the keys of a target that are in SQL."""
    conditions = [_option_condition(text) for text in wanted.options]
    if wanted.collectors:
        conditions.append(in_list(targets.c.collector, wanted.collectors))
    if wanted.credentials:
        conditions.append(credential_condition(wanted.credentials))
    return conditions


def credential_condition(names: Sequence[str]) -> sa.ColumnElement[bool]:
    """Return the condition that a target is polled with a credential: its own, or its device's."""
    named = sa.select(credentials.c.id).where(in_list(credentials.c.name, names))
    having = sa.select(devices.c.id).where(devices.c.credential_id.in_(named))
    is_inherited = sa.and_(targets.c.credential_id.is_(None), targets.c.device_id.in_(having))
    return sa.or_(targets.c.credential_id.in_(named), is_inherited)


def _option_condition(text: str) -> sa.ColumnElement[bool]:
    """Return the condition that a target has an option with this value, a text or another one."""
    name, _, value = text.partition("=")
    # Both databases have the operator; the result is JSON: false, 1161, or "2c" with quotes.
    stored = sa.type_coerce(targets.c.options, sa.Text).op("->")(name)
    return sa.cast(stored, sa.Text).in_([value, json.dumps(value)])


def tag_conditions(conn: Connection, wanted: TargetFilter) -> list[sa.ColumnElement[bool]]:
    """Return the conditions that a device has all tags. PostgreSQL has an index for them."""
    if not wanted.tags:
        return []
    if conn.dialect.name == "postgresql":
        return [sa.type_coerce(devices.c.tags, JSONB).contains(list(wanted.tags))]

    conditions: list[sa.ColumnElement[bool]] = []
    for tag in wanted.tags:
        # The text is looked at first: nearly all rows end there, without a look at their parts.
        stored_text = sa.type_coerce(devices.c.tags, sa.Text)
        elements = sa.func.json_each(devices.c.tags).table_valued("value")
        conditions.append(sa.func.instr(stored_text, json.dumps(tag)) > 0)
        conditions.append(sa.exists().select_from(elements).where(elements.c.value == tag))
    return conditions


def name_conditions(conn: Connection, wanted: TargetFilter) -> list[sa.ColumnElement[bool]]:
    """Return the condition that a device's name is one of the names, or fits a pattern."""
    if not wanted.names:
        return []
    return [sa.or_(*(_name_condition(conn, name) for name in wanted.names))]


def address_conditions(wanted: TargetFilter) -> list[sa.ColumnElement[bool]]:
    """Return a condition that every matching address meets, and few others: `AddressMatch`
    decides.
    """
    if not wanted.addresses:
        return []
    return [sa.or_(*(_address_condition(pattern) for pattern in wanted.addresses))]


def _matching(
    conn: Connection, query: sa.Select[Any], wanted: TargetFilter
) -> Iterator[sa.Row[*tuple[Any, ...]]]:
    """Yield the rows of a query on devices that match the keys of devices."""
    limited = query.where(*device_conditions(conn, wanted))
    rows = conn.execution_options(yield_per=_ROWS_PER_FETCH).execute(limited)
    if not wanted.addresses:
        yield from rows
        return

    match = AddressMatch(wanted.addresses)
    for row in rows:
        if match.accepts(row.address):
            yield row


def is_pattern(text: str) -> bool:
    """Whether a name has wildcards."""
    return bool(set(text) & set("*?"))


def literal_prefix(pattern: str) -> str:
    """Return the text before the first wildcard: every name that fits begins with it."""
    return re.split(r"[*?]", pattern, maxsplit=1)[0]


def _site_condition(names: Sequence[str]) -> sa.ColumnElement[bool]:
    """Return the condition on the key of the site, which has an index."""
    ids = sa.select(sites.c.id).where(in_list(sites.c.name, names))
    condition: sa.ColumnElement[bool] = devices.c.site_id.in_(ids)
    return sa.or_(condition, devices.c.site_id.is_(None)) if "" in names else condition


def _name_condition(conn: Connection, pattern: str) -> sa.ColumnElement[bool]:
    """Return the condition that a device's name fits a pattern with * and ?, exact in case."""
    if not is_pattern(pattern):
        return devices.c.name == pattern
    if conn.dialect.name == "postgresql":
        return devices.c.name.like(_like(pattern), escape="\\")
    return devices.c.name.op("GLOB")(pattern.replace("[", "[[]"))


def _address_condition(pattern: str) -> sa.ColumnElement[bool]:
    try:
        network = ipaddress.ip_network(pattern, strict=False)
    except ValueError:
        return devices.c.address.ilike(_like(pattern), escape="\\")
    if isinstance(network, ipaddress.IPv6Network):
        return devices.c.address.like("%:%")
    return devices.c.address.like(octet_prefix(network) + "%")


def octet_prefix(network: ipaddress.IPv4Network) -> str:
    """Return the text that all addresses of a network begin with: its whole octets."""
    octets = str(network.network_address).split(".")
    whole = network.prefixlen // 8
    return ".".join(octets[:whole]) + ("." if 0 < whole < len(octets) else "")


def _like(pattern: str) -> str:
    """Return a pattern with * and ? as one of LIKE, with backslashes as escapes."""
    escaped = pattern.replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_")
    return escaped.replace("*", "%").replace("?", "_")


def selected_target(row: Any) -> SelectedTarget:
    return SelectedTarget(
        id=row.id,
        device_id=row.device_id,
        device=row.device,
        name=row.name,
        collector=row.collector,
        enabled=bool(row.enabled),
        address=row.address,
    )


def unknown_sites(engine: Engine, names: Sequence[str]) -> list[str]:
    """Return the names that no site has. The empty name stands for devices without a site."""
    if not any(names):
        return []
    query = sa.select(sites.c.name).where(in_list(sites.c.name, names))
    with sql.single_read(engine) as conn:
        known = {"", *conn.execute(query).scalars()}
    return [name for name in names if name not in known]


def unknown_credentials(engine: Engine, names: Sequence[str]) -> list[str]:
    """Return the names that no credential has."""
    if not names:
        return []
    query = sa.select(credentials.c.name).where(in_list(credentials.c.name, names))
    with sql.single_read(engine) as conn:
        known = set(conn.execute(query).scalars())
    return [name for name in names if name not in known]


def unused_collectors(engine: Engine, names: Sequence[str]) -> list[str]:
    """Return the names of collectors that no target has, each by one look into the index."""
    if not names:
        return []
    used = [sa.exists().where(targets.c.collector == name) for name in names]
    with sql.single_read(engine) as conn:
        [row] = conn.execute(sa.select(*used))
    return [name for name, is_used in zip(names, row, strict=True) if not is_used]


def collectors_in_use(engine: Engine) -> list[str]:
    query = sa.select(targets.c.collector).distinct()
    with sql.single_read(engine) as conn:
        return list(conn.execute(query).scalars())


WITH_SITE = devices.outerjoin(sites, devices.c.site_id == sites.c.id)

TARGETS_WITH_SITE = targets.join(WITH_SITE, targets.c.device_id == devices.c.id)

TARGETS = sa.select(
    targets.c.id,
    devices.c.id.label("device_id"),
    devices.c.name.label("device"),
    devices.c.address,
    targets.c.name,
    targets.c.collector,
    sa.and_(targets.c.enabled, devices.c.enabled).label("enabled"),
).select_from(TARGETS_WITH_SITE)
