"""What does the rest of the platform need to know of the inventory, and what changed since it last asked?

Every change is one transaction that takes the next `inventory.version` first: the lock on that row puts
changes in commit order, so whoever has seen version n has seen every change up to n.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine, Row

from poller.db import engine as sql
from poller.db.in_list import among
from poller.db.tables import credentials as credentials_table
from poller.db.tables import devices, inventory, removed_targets, sites, targets
from poller.domain.inventory.poll_target import PollTarget, TargetSpec
from poller.domain.scheduling import queue_routing
from poller.domain.scheduling.interval import Policy

log = logging.getLogger(__name__)

AnyRow = Row[*tuple[Any, ...]]

#: Called with the new version after a commit: a wake-up for the scheduler, allowed to fail.
Notify = Callable[[int], None]

_ROWS_PER_FETCH = 5_000


@dataclass(frozen=True, slots=True)
class Changes:
    """What happened after some version, up to and including `version`."""

    version: int
    specs: list[TargetSpec]
    removed: list[int]


@dataclass(frozen=True, slots=True)
class Fleet:
    """Every target at one version. `specs` is a stream: read it once, inside the `with`."""

    version: int
    specs: Iterator[TargetSpec]


@dataclass(frozen=True, slots=True)
class HostChanges:
    """Targets and the addresses of their devices, as far as they changed after some version."""

    version: int
    hosts: list[tuple[int, str]]
    removed: list[int]


class Sealed(NamedTuple):
    """A stored credential: open it with the vault. `version` grows with every new secret."""

    version: int
    envelope: str
    name: str


@dataclass(frozen=True, slots=True)
class Change:
    """One change of the inventory in progress: stamp what it touches with `version`."""

    conn: Connection
    version: int
    now: datetime


@contextmanager
def change(engine: Engine, notify: Notify | None = None) -> Iterator[Change]:
    """One transaction, one new version; after the commit the scheduler is woken.

    The wake-up is a courtesy: the scheduler looks by itself too, so its failure is only noted.
    """
    with sql.writing(engine) as conn:
        number = int(conn.execute(_NEXT_VERSION).scalar_one())
        yield Change(conn, number, datetime.now(UTC))
    if notify:
        try:
            notify(number)
        except Exception as error:  # noqa: BLE001  the change is committed, nothing may undo that
            log.warning("the scheduler could not be woken, it will notice by itself: %s", error)


def stamp_targets(at: Change, *conditions: sa.ColumnElement[bool]) -> int:
    """Mark targets as changed by this change; returns how many."""
    stamped = at.conn.execute(
        sa.update(targets).where(*conditions).values(version=at.version, updated_at=at.now)
    )
    return stamped.rowcount


def version(engine: Engine) -> int:
    """The number of the last change."""
    with sql.peeking(engine) as conn:
        return version_in(conn)


def version_in(conn: Connection) -> int:
    return int(conn.execute(_VERSION).scalar_one())


def changes_since(engine: Engine, since: int) -> Changes:
    """Targets added, changed or removed after version `since`.

    A result whose `version` is smaller than `since` means that the database is another one (a restored
    backup): forget everything and read `all_specs`.
    """
    with sql.reading(engine) as conn:
        now = version_in(conn)
        if now == since:
            return Changes(now, [], [])
        specs = [_spec(row) for row in conn.execute(_CHANGED, {"since": since})]
        gone = conn.execute(_REMOVED, {"since": since}).scalars()
        return Changes(now, specs, list(gone))


@contextmanager
def all_specs(engine: Engine) -> Iterator[Fleet]:
    """Every target, enabled or not, streamed from one consistent snapshot: `with all_specs(e) as fleet`."""
    with sql.reading(engine) as conn:
        now = version_in(conn)
        rows = conn.execution_options(yield_per=_ROWS_PER_FETCH).execute(_SPECS)
        yield Fleet(now, map(_spec, rows))


def hosts_since(engine: Engine, collectors: Collection[str], since: int) -> HostChanges:
    """Where the devices of these collectors' targets are: those added, changed or removed after version `since`."""
    with sql.reading(engine) as conn:
        now = version_in(conn)
        rows = conn.execute(_HOSTS, {"collectors": list(collectors), "since": since})
        hosts = [(int(key), str(address)) for key, address in rows]
        return HostChanges(now, hosts, list(conn.execute(_REMOVED, {"since": since}).scalars()))


def poll_targets(engine: Engine, ids: Iterable[int]) -> dict[int, PollTarget]:
    """What a worker needs to poll these targets; ids that are gone are simply missing."""
    found: dict[int, PollTarget] = {}
    with sql.peeking(engine) as conn:
        for row in conn.execute(_POLL_TARGETS, {"ids": list(ids)}):
            found[row[0]] = _poll_target(row)
    return found


def credentials(engine: Engine, ids: Iterable[int]) -> dict[int, Sealed]:
    """The envelopes of these credentials; ids that are gone are simply missing."""
    found: dict[int, Sealed] = {}
    with sql.peeking(engine) as conn:
        for key, number, envelope, name in conn.execute(_CREDENTIALS, {"ids": list(ids)}):
            found[key] = Sealed(number, envelope, name)
    return found


def credential(engine: Engine, key: int) -> Sealed | None:
    return credentials(engine, [key]).get(key)


def _spec(row: AnyRow) -> TargetSpec:
    key, number, collector, interval_ms, timeout_ms, enabled, site, device, target = row
    queue = _queue(collector, site, device, target)
    return TargetSpec(key, number, queue, interval_ms, timeout_ms, bool(enabled))


@lru_cache(maxsize=4096)
def _queue(collector: str, site: str | None, device: str, target: str) -> str:
    """A fleet has few domains and many targets: parse each combination once."""
    levels = (json.loads(text) if text else {} for text in (site, device, target))
    return queue_routing.queue(collector, queue_routing.merge(*levels))


_make_poll_target: Callable[..., PollTarget] = PollTarget


def _poll_target(row: AnyRow) -> PollTarget:
    fields: tuple[Any, ...] = tuple(row)
    return _make_poll_target(
        *fields[:11], tuple(fields[11]), fields[12], Policy(fields[13]), *fields[14:]
    )


def _text(column: sa.Column[Any]) -> sa.Cast[str]:
    return sa.cast(column, sa.Text)


_VERSION = sa.select(inventory.c.version)
_NEXT_VERSION = (
    sa.update(inventory).values(version=inventory.c.version + 1).returning(inventory.c.version)
)

_JOINED = targets.join(devices, targets.c.device_id == devices.c.id).outerjoin(
    sites, devices.c.site_id == sites.c.id
)

_SPECS = sa.select(
    targets.c.id,
    targets.c.version,
    targets.c.collector,
    targets.c.interval_ms,
    targets.c.timeout_ms,
    sa.and_(targets.c.enabled, devices.c.enabled),
    _text(sites.c.requires),
    _text(devices.c.requires),
    _text(targets.c.requires),
).select_from(_JOINED)

_CHANGED = _SPECS.where(targets.c.version > sa.bindparam("since"))

_HOSTS = (
    sa.select(targets.c.id, devices.c.address)
    .select_from(targets.join(devices, targets.c.device_id == devices.c.id))
    .where(among(targets.c.collector, "collectors"), targets.c.version > sa.bindparam("since"))
)

_REMOVED = sa.select(removed_targets.c.target_id).where(
    removed_targets.c.version > sa.bindparam("since")
)

_POLL_TARGETS = (
    sa.select(
        targets.c.id,
        targets.c.version,
        targets.c.name,
        devices.c.id,
        devices.c.name,
        devices.c.address,
        sa.func.coalesce(sites.c.name, ""),
        targets.c.collector,
        targets.c.interval_ms,
        targets.c.timeout_ms,
        targets.c.options,
        devices.c.tags,
        sa.func.coalesce(targets.c.credential_id, devices.c.credential_id),
        targets.c.policy,
        targets.c.min_ms,
        targets.c.max_ms,
        targets.c.staleness,
    )
    .select_from(_JOINED)
    .where(among(targets.c.id, "ids"))
)

_CREDENTIALS = sa.select(
    credentials_table.c.id,
    credentials_table.c.version,
    credentials_table.c.envelope,
    credentials_table.c.name,
).where(among(credentials_table.c.id, "ids"))
