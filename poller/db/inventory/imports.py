"""Whole fleets at once: all or nothing, in a handful of statements however long the file is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from poller import errors
from poller.db import bulk
from poller.db import engine as sql
from poller.db.in_list import among
from poller.db.inventory import devices as device_rows
from poller.db.inventory import inventory_feed
from poller.db.inventory import targets as target_rows
from poller.db.inventory.inventory_feed import Change, Notify
from poller.db.tables import credentials, devices, sites, targets
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.inventory.problem import Problem

_ROWS_PER_STATEMENT = 5_000
T = TypeVar("T")


class Row(NamedTuple):
    """One device of the file with its targets."""

    device: DeviceDraft
    targets: Sequence[TargetDraft] = ()


class Misfit(NamedTuple):
    """A problem that only the database could see, of row number `row` (from 0) or of one of its targets."""

    row: int
    problem: Problem
    target: int | None = None


class Refused(errors.InvalidInput):
    """Nothing was imported; `misfits` says why, for every row."""

    def __init__(self, message: str, cause: str = "", hint: str = "") -> None:
        super().__init__(message, cause, hint)
        self.misfits: list[Misfit] = []


@dataclass(frozen=True, slots=True)
class Imported:
    """What the file brought. A device that stays as it is counts as unchanged, whatever its targets do."""

    added: int
    updated: int
    targets_added: int
    targets_updated: int
    unchanged: int = 0
    targets_unchanged: int = 0

    @property
    def nothing(self) -> bool:
        return not (self.added or self.updated or self.targets_added or self.targets_updated)


class _NothingStored(Exception):
    """Rolls back a trial, or a change that changed nothing: no version, no wake-up."""


@dataclass(frozen=True, slots=True)
class _Known:
    """What the database has of what the file names."""

    devices: Mapping[str, Mapping[str, Any]]
    targets: Mapping[tuple[str, str], Mapping[str, Any]]
    credentials: Mapping[str, int]


def apply_import(
    engine: Engine,
    rows: Sequence[Row],
    *,
    update: bool = False,
    dry_run: bool = False,
    notify: Notify | None = None,
) -> Imported:
    """Store all rows in one transaction. Existing devices are an error unless `update`.

    An update changes what a row gives and keeps the rest, also targets the file does not mention; what already
    is as the file has it keeps its version. Raises Refused, having changed nothing.
    """
    result = Imported(0, 0, 0, 0)
    with suppress(_NothingStored), inventory_feed.change(engine, None if dry_run else notify) as at:
        known = _known(at.conn, rows)
        if misfits := _misfits(rows, known, update):
            refused = Refused(
                f"{len(misfits)} rows do not fit", hint="correct them and import again"
            )
            refused.misfits = misfits
            raise refused
        result = _store(at, rows, known)
        if dry_run or result.nothing:
            raise _NothingStored
    return result


def check(engine: Engine, rows: Sequence[Row], *, update: bool = False) -> list[Misfit]:
    """What an import of these rows would be refused for; changes nothing."""
    with sql.reading(engine) as conn:
        return _misfits(rows, _known(conn, rows), update)


def _known(conn: Connection, rows: Sequence[Row]) -> _Known:
    names = {"names": [row.device.name for row in rows]}
    found = {row["name"]: dict(row) for row in conn.execute(_DEVICES, names).mappings()}
    old = {device["id"]: name for name, device in found.items()}
    held = {
        (old[row["device_id"]], row["name"]): dict(row)
        for row in conn.execute(_TARGETS, {"device_ids": list(old)}).mappings()
    }
    ids = conn.execute(sa.select(credentials.c.name, credentials.c.id)).all()
    return _Known(found, held, dict(ids))


def _misfits(rows: Sequence[Row], known: _Known, update: bool) -> list[Misfit]:
    found: list[Misfit] = []
    seen: set[str] = set()
    for number, row in enumerate(rows):
        found += (Misfit(number, problem) for problem in _problems(row, known, update, seen))
        for place, target in enumerate(row.targets):
            found += (
                Misfit(number, problem, place)
                for problem in _target_problems(row.device.name, target, known)
            )
        seen.add(row.device.name)
    return found


def _problems(row: Row, known: _Known, update: bool, seen: set[str]) -> Iterator[Problem]:
    """Without the names the line is about, so that equal complaints can be told as one."""
    device = row.device
    if device.name in seen:
        yield Problem("name", "the device is in the file twice", "rename or remove one of them")
    if device.name in known.devices and not update:
        yield Problem("name", "there is a device of this name already", "add --update to change it")
    if device.name not in known.devices and device.address is None:
        yield Problem("address", "a new device needs an address")
    yield from _credential_problems(device.credential, known)
    names = [target.name or target.collector for target in row.targets]
    for name in sorted({str(name) for name in names if names.count(name) > 1}):
        yield Problem(
            "target",
            f'the device has two targets named "{name}" in the file',
            "give one another name",
        )


def _target_problems(device: str, target: TargetDraft, known: _Known) -> Iterator[Problem]:
    yield from _credential_problems(target.credential, known)
    old = known.targets.get((device, target.name or target.collector or ""))
    if old is None and target.collector is None:
        yield Problem("collector", f'the new target "{target.name}" has no collector')
    else:
        yield from target_rows.settle(target, old)[1]


def _credential_problems(name: str | None, known: _Known) -> Iterator[Problem]:
    if name and name not in known.credentials:
        yield Problem(
            "credential",
            f'no credential named "{name}"',
            f"poller credential add {name} --kind community",
        )


def _store(at: Change, rows: Sequence[Row], known: _Known) -> Imported:
    site_ids = _site_ids(at, {row.device.site for row in rows} - {None, ""})
    values = [_device_values(at, row.device, known, site_ids) for row in rows]
    fresh = [
        value
        for value in values
        if not _unchanged(value, _DEVICE_COLUMNS, known.devices.get(value[0]))
    ]
    for part in _parts(sorted(fresh)):
        bulk.insert(at.conn, devices, part, _UPDATE_DEVICE, _DEVICE_COLUMNS)
    changed = [known.devices[value[0]]["id"] for value in fresh if value[0] in known.devices]
    inventory_feed.stamp_targets(at, among(targets.c.device_id, changed))
    added, updated, same = _store_targets(at, rows, known)
    _gather_statistics(at.conn, len(fresh))
    new = len(rows) - len(known.devices)
    return Imported(new, len(changed), added, updated, len(known.devices) - len(changed), same)


def _unchanged(
    value: tuple[Any, ...], columns: Sequence[str], old: Mapping[str, Any] | None
) -> bool:
    pairs = zip(columns, value, strict=True)
    return old is not None and all(old[name] == new for name, new in pairs if name not in _STAMPS)


def _gather_statistics(conn: Connection, rows: int) -> None:
    """Tell the planner at once: by itself it learns of a fleet a minute later, and scans until then."""
    if conn.dialect.name == "postgresql" and rows >= _ROWS_PER_STATEMENT:
        conn.exec_driver_sql("ANALYZE sites, devices, targets")


def _store_targets(at: Change, rows: Sequence[Row], known: _Known) -> tuple[int, int, int]:
    """Returns how many were added, how many changed and how many were as they are already."""
    ids = dict(at.conn.execute(_DEVICE_IDS, {"names": [row.device.name for row in rows]}).all())
    values, updated, same = [], 0, 0
    for row in rows:
        for target in row.targets:
            old = known.targets.get((row.device.name, target.name or target.collector or ""))
            value = _target_values(at, ids[row.device.name], target, old, known)
            if _unchanged(value, _TARGET_COLUMNS, old):
                same += 1
                continue
            updated += old is not None
            values.append(value)
    values.sort(key=lambda value: value[:2])
    for part in _parts(values):
        bulk.insert(at.conn, targets, part, _UPDATE_TARGET, _TARGET_COLUMNS)
    return len(values) - updated, updated, same


def _parts(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """A million rows in one statement would need the memory of all of them on both sides."""
    for start in range(0, len(items), _ROWS_PER_STATEMENT):
        yield items[start : start + _ROWS_PER_STATEMENT]


def _site_ids(at: Change, names: set[Any]) -> dict[str, int]:
    """Every site of the file, made where it is missing."""
    rows: list[tuple[Any, ...]] = [(name, {}, at.now, at.now) for name in sorted(names)]
    columns = ("name", "requires", "created_at", "updated_at")
    for part in _parts(rows):
        bulk.insert(at.conn, sites, part, "ON CONFLICT (name) DO NOTHING", columns)
    return dict(at.conn.execute(sa.select(sites.c.name, sites.c.id)).all())


def _device_values(
    at: Change, draft: DeviceDraft, known: _Known, site_ids: Mapping[str, int]
) -> tuple[Any, ...]:
    old = known.devices.get(draft.name, device_rows.DEFAULTS)
    return (
        draft.name,
        _first(draft.address, old.get("address")),
        old["site_id"] if draft.site is None else site_ids.get(draft.site),
        old["credential_id"]
        if draft.credential is None
        else known.credentials.get(draft.credential),
        list(_first(draft.tags, old["tags"])),
        dict(_first(draft.requires, old["requires"])),
        _first(draft.enabled, old["enabled"]),
        at.now,
        at.now,
    )


def _target_values(
    at: Change, device_id: int, draft: TargetDraft, old: Mapping[str, Any] | None, known: _Known
) -> tuple[Any, ...]:
    row = target_rows.new_row(draft) if old is None else {**old, **target_rows.given(draft)}
    if old is not None:
        row |= target_rows.timed(draft, old)
    if draft.credential is not None:
        row["credential_id"] = known.credentials.get(draft.credential)
    stored = {
        **row,
        "device_id": device_id,
        "version": at.version,
        "created_at": at.now,
        "updated_at": at.now,
    }
    return tuple(stored[column] for column in _TARGET_COLUMNS)


def _first(given: Any, old: Any) -> Any:
    return old if given is None else given


def _replacing(columns: Sequence[str]) -> str:
    return ", ".join(
        f"{column} = excluded.{column}" for column in columns if column != "created_at"
    )


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

_DEVICES = sa.select(devices).where(among(devices.c.name, "names"))
_DEVICE_IDS = sa.select(devices.c.name, devices.c.id).where(among(devices.c.name, "names"))
_TARGETS = sa.select(targets).where(among(targets.c.device_id, "device_ids"))
