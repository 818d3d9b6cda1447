"""Whole fleets at once: all or nothing, in a handful of statements however long the file is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from poller import errors
from poller.db import bulk, inventory
from poller.db import devices as device_rows
from poller.db import engine as sql
from poller.db import targets as target_rows
from poller.db.among import among
from poller.db.inventory import Change, Notify
from poller.db.tables import credentials, devices, sites, targets
from poller.domain.draft import DeviceDraft, Problem, TargetDraft

_ROWS_PER_STATEMENT = 5_000
T = TypeVar("T")


class Row(NamedTuple):
    """One device of the file with its targets."""

    device: DeviceDraft
    targets: Sequence[TargetDraft] = ()


class Misfit(NamedTuple):
    """A problem that only the database could see, of row number `row` (from 0)."""

    row: int
    problem: Problem


class Refused(errors.InvalidInput):
    """Nothing was imported; `misfits` says why, for every row."""

    def __init__(self, message: str, cause: str = "", hint: str = "") -> None:
        super().__init__(message, cause, hint)
        self.misfits: list[Misfit] = []


@dataclass(frozen=True, slots=True)
class Imported:
    added: int
    updated: int
    targets_added: int
    targets_updated: int


class _OnlyTrying(Exception):
    """Rolls a trial back."""


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

    An update changes what a row gives and keeps the rest, also targets the file does not mention.
    Raises Refused, having changed nothing.
    """
    result = Imported(0, 0, 0, 0)
    with suppress(_OnlyTrying), inventory.change(engine, None if dry_run else notify) as at:
        known = _known(at.conn, rows)
        if misfits := _misfits(rows, known, update):
            refused = Refused(f"{len(misfits)} rows do not fit", hint="correct them and import again")
            refused.misfits = misfits
            raise refused
        result = _store(at, rows, known)
        if dry_run:
            raise _OnlyTrying
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
        seen.add(row.device.name)
    return found


def _problems(row: Row, known: _Known, update: bool, seen: set[str]) -> Iterator[Problem]:
    device = row.device
    if device.name in seen:
        yield Problem("name", f'device "{device.name}" is in the file twice')
    if device.name in known.devices and not update:
        yield Problem("name", f'there is a device named "{device.name}" already', "add --update to change it")
    if device.name not in known.devices and device.address is None:
        yield Problem("address", f'the new device "{device.name}" has no address')
    for name in {device.credential, *(target.credential for target in row.targets)} - {None, ""}:
        if name not in known.credentials:
            yield Problem("credential", f'no credential named "{name}"', f"poller credential add {name}")
    names = [target.name or target.collector for target in row.targets]
    for name in sorted({str(name) for name in names if names.count(name) > 1}):
        yield Problem("target", f'device "{device.name}" has two targets named "{name}" in the file')
    for target in row.targets:
        yield from _target_problems(device.name, target, known)


def _target_problems(device: str, target: TargetDraft, known: _Known) -> Iterator[Problem]:
    old = known.targets.get((device, target.name or target.collector or ""))
    if old is None and target.collector is None:
        yield Problem("collector", f'the new target "{target.name}" has no collector')
        return
    try:
        if old is None:
            target_rows.new_row(target)
        else:
            target_rows.check_times(old["interval_ms"], old["timeout_ms"], target)
    except errors.InvalidInput as error:
        yield Problem("timeout", str(error), error.hint)


def _store(at: Change, rows: Sequence[Row], known: _Known) -> Imported:
    site_ids = _site_ids(at, {row.device.site for row in rows} - {None, ""})
    for part in _parts(rows):
        values = [_device_values(at, row.device, known, site_ids) for row in part]
        bulk.insert(at.conn, devices, sorted(values), _UPDATE_DEVICE, _DEVICE_COLUMNS)
    old = [device["id"] for device in known.devices.values()]
    inventory.stamp_targets(at, among(targets.c.device_id, old))
    added, updated = _store_targets(at, rows, known)
    _gather_statistics(at.conn, len(rows))
    return Imported(len(rows) - len(old), len(old), added, updated)


def _gather_statistics(conn: Connection, rows: int) -> None:
    """Tell the planner at once: by itself it learns of a fleet a minute later, and scans until then."""
    if conn.dialect.name == "postgresql" and rows >= _ROWS_PER_STATEMENT:
        conn.exec_driver_sql("ANALYZE sites, devices, targets")


def _store_targets(at: Change, rows: Sequence[Row], known: _Known) -> tuple[int, int]:
    """Returns how many were added and how many changed."""
    ids = dict(at.conn.execute(_DEVICE_IDS, {"names": [row.device.name for row in rows]}).all())
    values, updated = [], 0
    for row in rows:
        for target in row.targets:
            old = known.targets.get((row.device.name, target.name or target.collector or ""))
            updated += old is not None
            values.append(_target_values(at, ids[row.device.name], target, old, known))
    values.sort(key=lambda value: value[:2])
    for part in _parts(values):
        bulk.insert(at.conn, targets, part, _UPDATE_TARGET, _TARGET_COLUMNS)
    return len(values) - updated, updated


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


def _device_values(at: Change, draft: DeviceDraft, known: _Known, site_ids: Mapping[str, int]) -> tuple[Any, ...]:
    old = known.devices.get(draft.name, device_rows.DEFAULTS)
    return (
        draft.name,
        _first(draft.address, old.get("address")),
        old["site_id"] if draft.site is None else site_ids.get(draft.site),
        old["credential_id"] if draft.credential is None else known.credentials.get(draft.credential),
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
    return ", ".join(f"{column} = excluded.{column}" for column in columns if column != "created_at")


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
    "enabled",
    "version",
    "created_at",
    "updated_at",
)
_UPDATE_DEVICE = f"ON CONFLICT (name) DO UPDATE SET {_replacing(_DEVICE_COLUMNS[1:])}"
_UPDATE_TARGET = f"ON CONFLICT (device_id, name) DO UPDATE SET {_replacing(_TARGET_COLUMNS[2:])}"

_DEVICES = sa.select(devices).where(among(devices.c.name, "names"))
_DEVICE_IDS = sa.select(devices.c.name, devices.c.id).where(among(devices.c.name, "names"))
_TARGETS = sa.select(targets).where(among(targets.c.device_id, "device_ids"))
