"""Moves from snmp_exporter to this platform: from `prometheus.yml` and `snmp.yml` to devices."""

from __future__ import annotations

import dataclasses
import glob
import json
import stat
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from poller import errors
from poller.collectors.credentials import Credential
from poller.collectors.snmp.modules import module_catalog, module_files, yaml_text
from poller.collectors.snmp.modules.file_logins import Auth
from poller.collectors.snmp.modules.module_files import Library
from poller.db.inventory import credential_rows, imports
from poller.db.inventory.inventory_feed import Author
from poller.domain.migration import exporter_plan, snmp_jobs
from poller.domain.migration.exporter_plan import Labelling, Plan
from poller.domain.migration.snmp_jobs import FoundJobs, ScrapedTarget
from poller.service.inventory import credential_actions, inventory_import
from poller.service.inventory.credential_actions import ReadSecret
from poller.service.inventory.exporter_logins import Logins
from poller.service.inventory.inventory_import import ImportFile, ImportResult

if TYPE_CHECKING:
    from poller.bootstrap import Services

#: Prometheus' own limit for a discovery file is none; this one is for typing errors.
_MOST_FILES = 10_000


@dataclass(frozen=True, slots=True)
class Files:
    """The two files, and which labels name a device and its site."""

    prometheus: Path
    snmp: Path
    labelling: Labelling = field(default_factory=Labelling)
    update: bool = False  # change devices that exist already


@dataclass(frozen=True, slots=True)
class PlannedCredential:
    """A login that becomes a credential, unless there is one of its name."""

    name: str
    kind: str
    exists: bool
    targets: int


@dataclass(frozen=True, slots=True)
class PlannedModule:
    """A module that targets use, and where its definition comes from."""

    name: str
    source: str  # "built in", or the file
    targets: int


@dataclass(frozen=True, slots=True)
class PlannedJob:
    """A job of Prometheus."""

    name: str
    targets: int
    modules: Sequence[str]
    auths: Sequence[str]
    intervals_ms: Sequence[int]


@dataclass(frozen=True, slots=True)
class Migration:
    """All that a migration makes, and what it leaves to a person."""

    jobs: Sequence[PlannedJob]
    other_jobs: Sequence[str]
    credentials: Sequence[PlannedCredential]
    modules: Sequence[PlannedModule]
    plan: Plan
    notes: Sequence[str]
    secrets: Mapping[str, Auth] = field(repr=False)


def plan(services: Services, files: Files) -> Migration:
    """Read both files. Raises ConfigError or InvalidInput for a file that cannot be used."""
    config = yaml_text.read(_text(files.prometheus), files.prometheus.name)
    found = snmp_jobs.find(config, _group_reader(files.prometheus.parent))
    config_option = (str(files.snmp.absolute()),)
    library = module_files.library(config_option)
    notes = list(found.notes)
    logins = Logins(library)
    usable = _usable(found, library, logins, notes)
    options = {each.modules: _options(each.modules, library, config_option) for each in usable}
    made = exporter_plan.make(usable, logins.uses, options, files.labelling)
    return Migration(
        jobs=_jobs(found.jobs, usable),
        other_jobs=found.other_jobs,
        credentials=_credentials(services, usable, logins.by_name),
        modules=_modules(usable, library, files.snmp),
        plan=made,
        notes=[*notes, *made.notes, *_file_notes(usable, library, files.snmp)],
        secrets=logins.by_name,
    )


def check(services: Services, author: Author, files: Files, migration: Migration) -> ImportResult:
    """Check the devices against the inventory, without a change.

    Raises BadFile; AlreadyExists for devices that would be changed, and must not be.
    """
    done = _import(services, author, migration, dry_run=True)
    if not files.update and _changes_devices(services, migration, done):
        raise errors.AlreadyExists(
            "devices of these files are in the inventory already, and are different there; "
            "nothing was changed",
            hint="add --update to change them; without --apply it counts them first",
        )
    return done


def apply(services: Services, author: Author, files: Files, migration: Migration) -> ImportResult:
    """Store the credentials and devices, all or nothing. Raises BadFile, AlreadyExists."""
    check(services, author, files, migration)
    added: list[str] = []
    try:
        for each in migration.credentials:
            if not each.exists:
                read = _reader(migration.secrets[each.name])
                credential_actions.add(services, author, each.name, each.kind, read)
                added.append(each.name)
        return _import(services, author, migration, dry_run=False)
    except BaseException:
        for name in added:
            with suppress(errors.PollerError):
                credential_rows.remove(services.engine, name, author)
        raise


def _reader(auth: Auth) -> ReadSecret:
    def read(_: type[Credential]) -> Credential:
        return auth.credential

    return read


def _import(
    services: Services, author: Author, migration: Migration, dry_run: bool
) -> ImportResult:
    """Import the devices. A device that is in the inventory as it would be stored stays so."""
    rows = [device.row for device in migration.plan.devices.values()]
    if dry_run:  # new credentials are stored right before the devices
        new = _new_credentials(migration)
        rows = [_without_credentials(row, new) for row in rows]
    content = json.dumps({"devices": rows}).encode()
    to_import = ImportFile(content, "json", "the devices", True, dry_run, collector="")
    return inventory_import.import_file(services, author, to_import)


def _new_credentials(migration: Migration) -> set[str]:
    return {each.name for each in migration.credentials if not each.exists}


def _without_credentials(row: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    targets = []
    for target in row["targets"]:
        left_out = {"credential"} if target["credential"] in names else ()
        targets.append({key: value for key, value in target.items() if key not in left_out})
    return {**row, "targets": targets}


def _changes_devices(services: Services, migration: Migration, done: ImportResult) -> bool:
    """Whether an import changes devices of the inventory, or gives them targets or logins."""
    if done.counts.updated or done.counts.targets_updated:
        return True
    rows = {name: device.row for name, device in migration.plan.devices.items()}
    stored = imports.existing_devices(services.engine, list(rows))
    kept_rows = [row for name, row in rows.items() if name in stored]
    new_targets = sum(len(row["targets"]) for name, row in rows.items() if name not in stored)
    logins = {target["credential"] for row in kept_rows for target in row["targets"]}
    return done.counts.targets_added > new_targets or bool(logins & _new_credentials(migration))


def _usable(
    found: FoundJobs, library: Library, logins: Logins, notes: list[str]
) -> list[ScrapedTarget]:
    """Return the targets whose modules and login exist. The others are noted, once each."""
    modules = {*module_catalog.built_in(), *library.names()}
    usable = []
    faults: Counter[str] = Counter()
    for target in found.targets:
        unknown = [name for name in target.modules if name not in modules]
        auth = None if unknown else logins.name_of(target)
        if auth is not None:
            usable.append(dataclasses.replace(target, auth=auth))
            continue
        missing = f'module "{unknown[0]}"' if unknown else f'auth "{target.auth}"'
        faults[f"job {target.job}: snmp.yml has no {missing}: targets that are left out"] += 1
    notes += [f"{text}: {number:,}" for text, number in faults.items()]
    return usable


def _options(names: tuple[str, ...], library: Library, config: tuple[str, ...]) -> dict[str, Any]:
    """Return the options that select these modules; the file is named only if it is needed."""
    options: dict[str, Any] = {"modules": list(names)}
    if not all(_is_built_in(name, library) for name in names):
        options["config"] = list(config)
    return options


def _is_built_in(name: str, library: Library) -> bool:
    """Whether the built-in module is the same as the file's, or the file has none."""
    if name not in module_catalog.built_in():
        return False
    return name not in library.names() or library.module(name) == module_catalog.built_in()[name]


def _jobs(names: Sequence[str], targets: Sequence[ScrapedTarget]) -> list[PlannedJob]:
    jobs = []
    for name in names:
        of_job = [target for target in targets if target.job == name]
        modules = {module for target in of_job for module in target.modules}
        auths = {target.auth for target in of_job}
        intervals = {target.interval_ms for target in of_job}
        jobs.append(
            PlannedJob(name, len(of_job), sorted(modules), sorted(auths), sorted(intervals))
        )
    return jobs


def _credentials(
    services: Services, targets: Sequence[ScrapedTarget], secrets: Mapping[str, Auth]
) -> list[PlannedCredential]:
    stored = credential_rows.kinds(services.engine)
    planned = []
    for name, auth in secrets.items():
        number = sum(target.auth == name for target in targets)
        planned.append(PlannedCredential(name, auth.credential.kind, name in stored, number))
    return planned


def _modules(targets: Sequence[ScrapedTarget], library: Library, file: Path) -> list[PlannedModule]:
    planned = []
    for name in sorted({module for target in targets for module in target.modules}):
        source = "built in" if _is_built_in(name, library) else file.name
        number = sum(name in target.modules for target in targets)
        planned.append(PlannedModule(name, source, number))
    return planned


def _file_notes(targets: Sequence[ScrapedTarget], library: Library, file: Path) -> list[str]:
    """Return a note if workers need the file of modules."""
    used = {module for target in targets for module in target.modules}
    if all(_is_built_in(name, library) for name in used):
        return []
    return [f"targets read modules from {file.absolute()}: every host with workers needs it there"]


def _group_reader(directory: Path) -> snmp_jobs.ReadGroups:
    """Return a reader of discovery files, whose paths are relative to the configuration."""

    def read(pattern: str) -> tuple[list[Any], list[str]]:
        groups: list[Any] = []
        faults: list[str] = []
        paths = sorted(glob.glob(str(directory / pattern)))[:_MOST_FILES]
        if not paths:
            faults.append(f"file_sd_configs: {pattern} names no file that exists here")
        for path in map(Path, paths):
            content = yaml_text.read(_text(path), path.name)  # JSON is YAML
            if isinstance(content, list):
                groups += content
            elif content is not None:
                faults.append(f"{path.name} has no list of target groups")
        return groups, faults

    return read


def _text(path: Path) -> str:
    """Return the text of a file. Raises InvalidInput."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise errors.InvalidInput(f"{path} is no plain file")
        if status.st_size > yaml_text.MAX_BYTES:
            raise errors.InvalidInput(f"{path} has more than {yaml_text.MAX_BYTES:,} bytes")
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise errors.InvalidInput(f"{path} cannot be read", cause=str(error)) from None
