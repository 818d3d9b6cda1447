"""Import whole fleets, all or nothing, in a handful of statements for a file of any length."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from operator import itemgetter
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from poller import errors
from poller.db import bulk
from poller.db import engine as sql
from poller.db.alerts import imported_parents
from poller.db.alerts.imported_parents import ImportedParents
from poller.db.in_list import in_list
from poller.db.inventory import devices as device_rows
from poller.db.inventory import inventory_feed
from poller.db.inventory import targets as target_rows
from poller.db.inventory.inventory_feed import NOBODY, Author, Change
from poller.db.tables import credentials, devices, sites, targets
from poller.domain.access import audit_entry
from poller.domain.access.audit_entry import AuditEntry
from poller.domain.inventory.draft import DeviceDraft, Problem, TargetDraft
from poller.domain.inventory.import_changes import ImportChanges

_ROWS_PER_STATEMENT = 5_000


class Row(NamedTuple):
    """One device of the file with its targets."""

    device: DeviceDraft
    targets: Sequence[TargetDraft] = ()


class Misfit(NamedTuple):
    """A problem that only the database shows, in row number `row` (from 0) or in one of its
    targets.
    """

    row: int
    problem: Problem
    target: int | None = None


class Refused(errors.InvalidInput):
    """Nothing was imported; `misfits` gives the reasons for every row."""

    def __init__(self, message: str, cause: str = "", hint: str = "") -> None:
        super().__init__(message, cause, hint)
        self.misfits: list[Misfit] = []


@dataclass(frozen=True, slots=True)
class Imported:
    """Counts of an import. A device counts apart from its targets."""

    added: int
    updated: int
    targets_added: int
    targets_updated: int
    unchanged: int = 0
    targets_unchanged: int = 0

    @property
    def nothing(self) -> bool:
        return not (self.added or self.updated or self.targets_added or self.targets_updated)


_SAME_NAME = Problem(
    "name",
    "the device has a target of this name already, earlier in the file",
    "remove this one, or give it another name",
)


class _NothingStored(Exception):
    """Rolls back a dry run, or an import that changes nothing: no version, no wake-up."""


@dataclass(frozen=True, slots=True)
class _Existing:
    """The rows that the database already has for the names in the file."""

    devices: Mapping[str, Mapping[str, Any]]
    targets: Mapping[tuple[str, str], Mapping[str, Any]]
    credentials: Mapping[str, int]
    parents: ImportedParents


def apply_import(
    engine: Engine,
    rows: Sequence[Row],
    *,
    update: bool = False,
    dry_run: bool = False,
    author: Author = NOBODY,
    changes: ImportChanges | None = None,
) -> Imported:
    """Store all rows in one transaction. Existing devices are an error unless `update`.

    An update changes the fields that a row gives; other fields, and targets that the file does not
    mention, stay. An unchanged row keeps its version. `changes` takes what is changed. Raises
    Refused without a change, EditConflict for other changes than `changes` expects.
    """
    result = Imported(0, 0, 0, 0)
    with suppress(_NothingStored), inventory_feed.change(engine, author) as change:
        existing = _read_existing(change.conn, rows)
        misfits = _misfits(rows, existing, update)
        if misfits:
            message = f"{len(misfits)} rows do not fit"
            refused = Refused(message, hint="correct them and import again")
            refused.misfits = misfits
            raise refused
        result = _store(change, rows, existing, changes)
        if changes is not None:
            changes.refuse_others()
        if dry_run or result.nothing:
            raise _NothingStored
        change.record(_entry(rows, result))
    return result


def _entry(rows: Sequence[Row], counts: Imported) -> AuditEntry:
    """Return the audit entry of an import: its counts and the first names."""
    names = audit_entry.bounded_names([row.device.name for row in rows])
    return AuditEntry("device.import", "file", {}, {**asdict(counts), "names": names}, len(rows))


def existing_devices(engine: Engine, names: Sequence[str]) -> dict[str, str]:
    """Return those of the names that a stored device has, with its site."""
    with sql.single_read(engine) as conn:
        return dict(conn.execute(_DEVICE_SITES, {"names": names}).all())


def check(engine: Engine, rows: Sequence[Row], *, update: bool = False) -> list[Misfit]:
    """Return the problems of an import of these rows. Changes nothing."""
    with sql.reading(engine) as conn:
        existing = _read_existing(conn, rows)
        return _misfits(rows, existing, update)


def _read_existing(conn: Connection, rows: Sequence[Row]) -> _Existing:
    names = {"names": [row.device.name for row in rows]}
    device_rows_by_name = {
        row["name"]: dict(row) for row in conn.execute(_DEVICES, names).mappings()
    }
    name_by_id = {device["id"]: name for name, device in device_rows_by_name.items()}
    target_rows_by_name = {}
    for row in conn.execute(_TARGETS, {"device_ids": list(name_by_id)}).mappings():
        device_name = name_by_id[row["device_id"]]
        target_rows_by_name[device_name, row["name"]] = dict(row)
    credential_ids = conn.execute(sa.select(credentials.c.name, credentials.c.id)).all()
    parents = imported_parents.read(conn, (row.device for row in rows))
    return _Existing(device_rows_by_name, target_rows_by_name, dict(credential_ids), parents)


def _misfits(rows: Sequence[Row], existing: _Existing, update: bool) -> list[Misfit]:
    misfits: list[Misfit] = []
    earlier_names: set[str] = set()
    for number, row in enumerate(rows):
        for problem in _problems(row, existing, update, earlier_names):
            misfits.append(Misfit(number, problem))
        for place, target in enumerate(row.targets):
            for problem in _target_problems(row.device.name, target, existing):
                misfits.append(Misfit(number, problem, place))
        for place in _repeated_names(row.targets):
            misfits.append(Misfit(number, _SAME_NAME, place))
        earlier_names.add(row.device.name)
    return misfits


def _problems(
    row: Row, known: _Existing, update: bool, earlier_names: set[str]
) -> Iterator[Problem]:
    """Yield problems without the device's name, so that equal problems can be reported as one."""
    device = row.device
    if device.name in earlier_names:
        yield Problem("name", "the device is in the file twice", "rename or remove one of them")
    if device.name in known.devices and not update:
        yield Problem(
            "name",
            "there is a device of this name already",
            "to change it: poller device import --update",
        )
    if device.name not in known.devices and device.address is None:
        yield Problem("address", "a new device needs an address")
    yield from known.parents.problems(device.name)
    yield from _credential_problems(device.credential, known)


def _repeated_names(drafts: Sequence[TargetDraft]) -> Iterator[int]:
    """Yield the places of targets whose name an earlier target of the device has."""
    earlier: set[str | None] = set()
    for place, target in enumerate(drafts):
        name = target.name or target.collector
        if name in earlier:
            yield place
        earlier.add(name)


def _target_problems(device: str, target: TargetDraft, known: _Existing) -> Iterator[Problem]:
    yield from _credential_problems(target.credential, known)
    old = known.targets.get((device, target.name or target.collector or ""))
    if old is None and target.collector is None:
        yield Problem("collector", f'the new target "{target.name}" has no collector')
    else:
        yield from target_rows.resolve_schedule(target, old)[1]


def _credential_problems(name: str | None, known: _Existing) -> Iterator[Problem]:
    if name and name not in known.credentials:
        hint = f"poller credential add {name} --kind community"
        yield Problem("credential", f'no credential named "{name}"', hint)


def _store(
    change: Change, rows: Sequence[Row], known: _Existing, changes: ImportChanges | None
) -> Imported:
    site_ids = _site_ids(change, {row.device.site for row in rows} - {None, ""})
    if changes is not None:
        changes.name_references(site_ids, known.credentials)
    written: list[dict[str, Any]] = []
    changed_ids: list[int] = []
    for row in rows:
        values = _device_values(change, row.device, known, site_ids)
        old = known.devices.get(row.device.name)
        has_new_parent = known.parents.changes(row.device.name)
        if old is not None and _is_unchanged(values, old) and not has_new_parent:
            continue
        written.append(values)
        if changes is not None:
            parent = known.parents.pair(row.device.name) if has_new_parent else None
            changes.add_device(values, old, parent)
        if old is not None:
            changed_ids.append(old["id"])

    written.sort(key=itemgetter("name"))
    _write(change.conn, devices, written, _DEVICE_COLUMNS, _UPDATE_DEVICE)
    known.parents.store(change)
    inventory_feed.stamp_targets(change, in_list(targets.c.device_id, changed_ids))
    counts = _store_targets(change, rows, known, changes)
    _gather_statistics(change.conn, len(written))
    return Imported(
        added=len(rows) - len(known.devices),
        updated=len(changed_ids),
        targets_added=counts["added"],
        targets_updated=counts["updated"],
        unchanged=len(known.devices) - len(changed_ids),
        targets_unchanged=counts["unchanged"],
    )


def _is_unchanged(values: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
    return all(old[name] == value for name, value in values.items() if name not in _STAMPS)


def _write(
    conn: Connection,
    table: sa.Table[Any],
    rows: Sequence[Mapping[str, Any]],
    columns: tuple[str, ...],
    on_conflict: str,
) -> None:
    """Insert in bounded statements: one statement with a million rows would fill both sides'
    memory.
    """
    for start in range(0, len(rows), _ROWS_PER_STATEMENT):
        part = rows[start : start + _ROWS_PER_STATEMENT]
        values = [tuple(row[column] for column in columns) for row in part]
        bulk.insert(conn, table, values, on_conflict, columns)


def _gather_statistics(conn: Connection, rows: int) -> None:
    """Analyze after a large import. By itself PostgreSQL does so a minute later, and scans until
    then.
    """
    if conn.dialect.name == "postgresql" and rows >= _ROWS_PER_STATEMENT:
        conn.exec_driver_sql("ANALYZE sites, devices, targets")


def _store_targets(
    change: Change, rows: Sequence[Row], known: _Existing, changes: ImportChanges | None
) -> Counter[str]:
    """Write the targets. Returns the numbers `added`, `updated` and `unchanged`."""
    names = {"names": [row.device.name for row in rows]}
    device_ids = dict(change.conn.execute(_DEVICE_IDS, names).all())
    written: list[dict[str, Any]] = []
    counts: Counter[str] = Counter()
    grown: set[int] = set()  # devices that had targets and get more
    for row in rows:
        for target in row.targets:
            target_name = target.name or target.collector or ""
            old = known.targets.get((row.device.name, target_name))
            values = _target_values(change, target, old, known)
            values["device_id"] = device_ids[row.device.name]
            if old is None:
                counts["added"] += 1
                if row.device.name in known.devices:
                    grown.add(values["device_id"])
            elif _is_unchanged(values, old):
                counts["unchanged"] += 1
                continue
            else:
                counts["updated"] += 1
            written.append(values)
            if changes is not None:
                changes.add_target(row.device.name, values, old)
    # Workers know a target with its siblings.
    inventory_feed.stamp_targets(change, in_list(targets.c.device_id, sorted(grown)))
    written.sort(key=itemgetter("device_id", "name"))
    _write(change.conn, targets, written, _TARGET_COLUMNS, _UPDATE_TARGET)
    return counts


def _site_ids(change: Change, names: set[Any]) -> dict[str, int]:
    """Return the ids of all sites; missing sites of the file are created."""
    stamps = {"created_at": change.now, "updated_at": change.now}
    rows = [{"name": name, "requires": {}, **stamps} for name in sorted(names)]
    _write(change.conn, sites, rows, _SITE_COLUMNS, "ON CONFLICT (name) DO NOTHING")
    return dict(change.conn.execute(sa.select(sites.c.name, sites.c.id)).all())


def _device_values(
    change: Change, draft: DeviceDraft, known: _Existing, site_ids: Mapping[str, int]
) -> dict[str, Any]:
    """Return the columns of a device: those of the draft over the stored ones or the defaults."""
    old = known.devices.get(draft.name, {"address": None, **device_rows.DEFAULTS})
    values: dict[str, Any] = {column: old[column] for column in _DEVICE_COLUMNS if column in old}
    values |= {"name": draft.name, "created_at": change.now, "updated_at": change.now}
    if draft.address is not None:
        values["address"] = draft.address
    if draft.site is not None:
        values["site_id"] = site_ids.get(draft.site)
    if draft.credential is not None:
        values["credential_id"] = known.credentials.get(draft.credential)
    if draft.tags is not None:
        values["tags"] = list(draft.tags)
    if draft.requires is not None:
        values["requires"] = dict(draft.requires)
    if draft.enabled is not None:
        values["enabled"] = draft.enabled
    return values


def _target_values(
    change: Change, draft: TargetDraft, old: Mapping[str, Any] | None, known: _Existing
) -> dict[str, Any]:
    """Return the columns of a target: those of the draft over the stored ones or the defaults."""
    if old is None:
        row = target_rows.new_row(draft)
    else:
        row = {column: old[column] for column in _TARGET_COLUMNS}
        row |= target_rows.given_columns(draft)
        row |= target_rows.schedule_columns(draft, old)
    if draft.credential is not None:
        row["credential_id"] = known.credentials.get(draft.credential)
    row |= {"version": change.version, "created_at": change.now, "updated_at": change.now}
    return row


def _replacing(columns: Sequence[str]) -> str:
    return ", ".join(
        f"{column} = excluded.{column}" for column in columns if column != "created_at"
    )


_SITE_COLUMNS = ("name", "requires", "created_at", "updated_at")
_DEVICE_COLUMNS = (
    "name",
    "address",
    "site_id",
    "credential_id",
    "tags",
    "requires",
    "enabled",
    "created_at",
    "updated_at",
)
_TARGET_COLUMNS = (
    "device_id",
    "name",
    "collector",
    "options",
    "credential_id",
    "requires",
    "interval_ms",
    "timeout_ms",
    "policy",
    "min_ms",
    "max_ms",
    "staleness",
    "enabled",
    "version",
    "created_at",
    "updated_at",
)
_STAMPS = ("version", "created_at", "updated_at")
_UPDATE_DEVICE = f"ON CONFLICT (name) DO UPDATE SET {_replacing(_DEVICE_COLUMNS[1:])}"
_UPDATE_TARGET = f"ON CONFLICT (device_id, name) DO UPDATE SET {_replacing(_TARGET_COLUMNS[2:])}"

_DEVICES = sa.select(devices).where(in_list(devices.c.name, "names"))
_DEVICE_SITES = (
    sa.select(devices.c.name, sa.func.coalesce(sites.c.name, ""))
    .select_from(devices.outerjoin(sites, devices.c.site_id == sites.c.id))
    .where(in_list(devices.c.name, "names"))
)
_DEVICE_IDS = sa.select(devices.c.name, devices.c.id).where(in_list(devices.c.name, "names"))
_TARGETS = sa.select(targets).where(in_list(targets.c.device_id, "device_ids"))
