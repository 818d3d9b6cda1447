"""The inventory as schedulers and workers read it: target specs, poll targets, and changes by
version.

Every change is one transaction that takes the next `inventory.version` first. The lock on that row
puts changes in commit order: a reader that has seen version n has seen every change up to n.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine, Row

from poller.db import database_clock
from poller.db import engine as sql
from poller.db.access import audit_rows
from poller.db.in_list import in_list
from poller.db.tables import credentials as credentials_table
from poller.db.tables import devices, inventory, removed_targets, sites, targets
from poller.domain import interned
from poller.domain.access.actor import Actor
from poller.domain.access.audit_entry import AuditEntry
from poller.domain.inventory.poll_target import PollTarget, TargetSpec
from poller.domain.scheduling import queue_routing
from poller.domain.scheduling.interval import Policy

log = logging.getLogger(__name__)

AnyRow = Row[*tuple[Any, ...]]

#: A wake-up for the scheduler, called with the new version after a commit. It may fail.
Notify = Callable[[int], None]

#: The target id of the row of `removed_targets` that has the newest pruned version.
PRUNED_MARK = 0

_ROWS_PER_FETCH = 5_000


@dataclass(frozen=True, slots=True)
class Changes:
    """Targets changed and removed after a given version, up to and including `version`.

    Removals are pruned once the board has them. If some are missing here, `is_complete` is False
    and the reader must read the whole fleet.
    """

    version: int
    specs: list[TargetSpec]
    removed: list[int]
    is_complete: bool = True


@dataclass(frozen=True, slots=True)
class Fleet:
    """Every target at one version. `specs` is a stream, readable once inside the `with`."""

    version: int
    specs: Iterator[TargetSpec]


@dataclass(frozen=True, slots=True)
class HostChanges:
    """Device addresses of targets changed after a given version."""

    version: int
    hosts: list[tuple[int, str]]  # target and address
    removed: list[int]
    is_complete: bool = True


class Sealed(NamedTuple):
    """An encrypted credential. `version` grows with every new secret."""

    version: int
    envelope: str
    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class Author:
    """The actor of a change, for the audit log, and the wake-up of the scheduler after it."""

    actor: Actor | None = None  # None: a change of a test or benchmark, without an audit row
    notify: Notify | None = None


#: An author of changes that nobody has to know about.
NOBODY = Author()


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the inventory in progress. Every row it touches gets its `version`."""

    conn: Connection
    version: int
    now: datetime
    entries: list[AuditEntry] = field(default_factory=list)  # stored when the change commits

    def record(self, entry: AuditEntry) -> None:
        """Add an entry to the audit log, in the transaction of the change."""
        self.entries.append(entry)


@contextmanager
def change(engine: Engine, author: Author = NOBODY) -> Iterator[Change]:
    """Run one transaction under a new version, then wake the scheduler.

    A failed wake-up is only logged: the scheduler also checks the version by itself.
    """
    with sql.writing(engine) as conn:
        new_version = int(conn.execute(_NEXT_VERSION).scalar_one())
        made = Change(conn, new_version, datetime.now(UTC))
        yield made
        if author.actor is not None:
            audit_rows.append(conn, author.actor, made.entries, database_clock.read_ms(conn))
    if author.notify:
        try:
            author.notify(new_version)
        except Exception as error:  # noqa: BLE001  door: the caller's wake-up; the change is committed
            log.warning("the scheduler could not be woken, it will notice by itself: %s", error)


def stamp_targets(change: Change, *conditions: sa.ColumnElement[bool]) -> int:
    """Give targets the version of this change. Returns how many."""
    values = {"version": change.version, "updated_at": change.now}
    statement = sa.update(targets).where(*conditions).values(values)
    return change.conn.execute(statement).rowcount


def version(engine: Engine) -> int:
    """Return the version of the last change."""
    with sql.single_read(engine) as conn:
        return version_in(conn)


def version_in(conn: Connection) -> int:
    return int(conn.execute(_VERSION).scalar_one())


def count_enabled(engine: Engine) -> int:
    """Return the number of enabled targets of enabled devices."""
    with sql.single_read(engine) as conn:
        return int(conn.execute(_COUNT_ENABLED).scalar_one())


def changes_since(engine: Engine, since: int) -> Changes:
    """Return targets added, changed or removed after version `since`.

    A result whose `version` is smaller than `since` comes from another database (a restored
    backup): the caller must read `all_specs`.
    """
    with sql.reading(engine) as conn:
        now = version_in(conn)
        if now == since:
            return Changes(now, [], [])
        specs = [_spec(row) for row in conn.execute(_CHANGED, {"since": since})]
        removed, is_complete = _removed_since(conn, since)
        return Changes(now, specs, removed, is_complete)


def _removed_since(conn: Connection, since: int) -> tuple[list[int], bool]:
    """Return the targets removed after version `since`, and whether these are all."""
    removed = list(conn.execute(_REMOVED, {"since": since}).scalars())
    if PRUNED_MARK not in removed:
        return removed, True
    removed.remove(PRUNED_MARK)
    return removed, False


def mark_removals_pruned(conn: Connection, applied: int) -> bool:
    """Remember that removals up to this version are pruned. Returns False if there are none."""
    is_mark = removed_targets.c.target_id == PRUNED_MARK
    old = sa.select(removed_targets.c.version).where(~is_mark, removed_targets.c.version <= applied)
    newest = conn.execute(old.order_by(removed_targets.c.version.desc()).limit(1)).scalar()
    if newest is None:
        return False
    conn.execute(sa.delete(removed_targets).where(is_mark))
    mark = {"target_id": PRUNED_MARK, "version": newest}
    conn.execute(sa.insert(removed_targets).values(mark))
    return True


@contextmanager
def all_specs(engine: Engine) -> Iterator[Fleet]:
    """Stream every target, enabled or not, from one consistent snapshot."""
    with sql.reading(engine) as conn:
        now = version_in(conn)
        rows = conn.execution_options(yield_per=_ROWS_PER_FETCH).execute(_SPECS)
        yield Fleet(now, map(_spec, rows))


def hosts_since(engine: Engine, collectors: Collection[str], since: int) -> HostChanges:
    """Return the device addresses of these collectors' targets that changed after version
    `since`.
    """
    with sql.reading(engine) as conn:
        now = version_in(conn)
        rows = conn.execute(_HOSTS, {"collectors": list(collectors), "since": since})
        hosts = [(int(row.id), str(row.address)) for row in rows]
        removed, is_complete = _removed_since(conn, since)
        return HostChanges(now, hosts, removed, is_complete)


def poll_targets(engine: Engine, ids: Iterable[int]) -> dict[int, PollTarget]:
    """Return these targets as a worker needs them. Removed targets are missing."""
    with sql.single_read(engine) as conn:
        rows = conn.execute(_POLL_TARGETS, {"ids": list(ids)}).all()
        by_device = _targets_by_device(conn, {row.device_id for row in rows})
    return {row.id: _poll_target(row, by_device[row.device_id]) for row in rows}


def _targets_by_device(conn: Connection, device_ids: Collection[int]) -> dict[int, list[int]]:
    """Return the ids of all targets of these devices, enabled or not."""
    by_device: dict[int, list[int]] = {device_id: [] for device_id in device_ids}
    for row in conn.execute(_OF_DEVICES, {"device_ids": list(device_ids)}):
        by_device[row.device_id].append(row.id)
    return by_device


def credentials(engine: Engine, ids: Iterable[int]) -> dict[int, Sealed]:
    """Return these credentials, encrypted. Removed credentials are missing."""
    with sql.single_read(engine) as conn:
        rows = conn.execute(_CREDENTIALS, {"ids": list(ids)}).all()
    return {row.id: Sealed(row.version, row.envelope, row.name, row.kind) for row in rows}


def credential(engine: Engine, key: int) -> Sealed | None:
    return credentials(engine, [key]).get(key)


def _spec(row: AnyRow) -> TargetSpec:
    return TargetSpec(
        id=row.id,
        version=row.version,
        queue=routed_queue(
            row.collector, row.site_requires, row.device_requires, row.target_requires
        ),
        interval_ms=row.interval_ms,
        timeout_ms=row.timeout_ms,
        enabled=bool(row.enabled),
    )


@lru_cache(maxsize=4096)
def routed_queue(collector: str, site: str | None, device: str, target: str) -> str:
    """Route a target by the requirements of its site, its device and its own.

    A fleet has few domains and many targets, so each combination is parsed once.
    """
    levels = [json.loads(text) if text else {} for text in (site, device, target)]
    return queue_routing.queue_name(collector, queue_routing.merge_requirements(*levels))


def _poll_target(row: AnyRow, of_device: Iterable[int]) -> PollTarget:
    return PollTarget(
        id=row.id,
        version=row.version,
        name=interned.value(row.name),
        device_id=row.device_id,
        device=row.device,
        address=row.address,
        site=interned.value(row.site),
        collector=interned.value(row.collector),
        interval_ms=row.interval_ms,
        timeout_ms=row.timeout_ms,
        options=row.options,
        tags=interned.sequence(tuple(row.tags)),
        credential_id=row.credential_id,
        siblings=tuple(target_id for target_id in of_device if target_id != row.id),
        policy=Policy(row.policy),
        min_ms=row.min_ms,
        max_ms=row.max_ms,
        staleness=row.staleness,
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
    sa.and_(targets.c.enabled, devices.c.enabled).label("enabled"),
    _text(sites.c.requires).label("site_requires"),
    _text(devices.c.requires).label("device_requires"),
    _text(targets.c.requires).label("target_requires"),
).select_from(_JOINED)

_COUNT_ENABLED = (
    sa.select(sa.func.count())
    .select_from(targets.join(devices, targets.c.device_id == devices.c.id))
    .where(targets.c.enabled, devices.c.enabled)
)

_CHANGED = _SPECS.where(targets.c.version > sa.bindparam("since"))

_HOSTS = (
    sa.select(targets.c.id, devices.c.address)
    .select_from(targets.join(devices, targets.c.device_id == devices.c.id))
    .where(in_list(targets.c.collector, "collectors"), targets.c.version > sa.bindparam("since"))
)

_REMOVED = sa.select(removed_targets.c.target_id).where(
    removed_targets.c.version > sa.bindparam("since")
)

_POLL_TARGETS = (
    sa.select(
        targets.c.id,
        targets.c.version,
        targets.c.name,
        devices.c.id.label("device_id"),
        devices.c.name.label("device"),
        devices.c.address,
        sa.func.coalesce(sites.c.name, "").label("site"),
        targets.c.collector,
        targets.c.interval_ms,
        targets.c.timeout_ms,
        targets.c.options,
        devices.c.tags,
        sa.func.coalesce(targets.c.credential_id, devices.c.credential_id).label("credential_id"),
        targets.c.policy,
        targets.c.min_ms,
        targets.c.max_ms,
        targets.c.staleness,
    )
    .select_from(_JOINED)
    .where(in_list(targets.c.id, "ids"))
)

_OF_DEVICES = (
    sa.select(targets.c.id, targets.c.device_id)
    .where(in_list(targets.c.device_id, "device_ids"))
    .order_by(targets.c.id)
)

_CREDENTIALS = sa.select(
    credentials_table.c.id,
    credentials_table.c.version,
    credentials_table.c.envelope,
    credentials_table.c.name,
    credentials_table.c.kind,
).where(in_list(credentials_table.c.id, "ids"))
