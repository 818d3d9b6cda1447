"""Imports an inventory file: all rows are checked first, then all are stored at once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from poller import errors
from poller.db.alerts import parent_rows
from poller.db.inventory import credential_rows, imports
from poller.db.inventory import targets as target_rows
from poller.db.inventory.imports import Imported, Misfit, Row
from poller.db.inventory.inventory_feed import Author
from poller.db.inventory.targets import Target
from poller.domain.inventory import draft
from poller.domain.inventory.draft import DeviceDraft, Problem, TargetDraft
from poller.domain.inventory.import_changes import FieldChange, ImportChanges, RowChange
from poller.domain.scheduling.schedule import Defaults
from poller.presentation import formatting
from poller.service.inventory import collector_checks, new_sites, option_secrets, port_placement
from poller.service.inventory.new_sites import NewSite
from poller.service.inventory_forms import file_forms
from poller.service.inventory_forms.file_forms import Form
from poller.service.inventory_forms.inventory_rows import LineProblem, RawRow, grouped

if TYPE_CHECKING:
    from poller.bootstrap import Services

#: Maximum number of problem groups that are listed.
GROUPS = 20

#: Follows the rows that are checked, for a progress bar.
Track = Callable[[Sequence[RawRow]], Iterable[RawRow]]


@dataclass(frozen=True, slots=True)
class ImportFile:
    """An inventory file, and what to do with it."""

    content: bytes
    form: Form
    name: str  # in problem reports
    update: bool = False  # change devices that exist already
    dry_run: bool = False
    #: The collector of new devices if the file says nothing about targets; None is the default
    #: one, "" is no target.
    collector: str | None = None
    #: Return the changes, and change nothing else than the digest of a preview stands for.
    shows_changes: bool = False
    expected: str = ""


@dataclass(frozen=True, slots=True)
class ImportResult:
    counts: Imported
    new_sites: Sequence[NewSite]
    notes: Sequence[str] = ()  # what is risky about the targets of the file
    changes: Sequence[RowChange] = ()  # if they are wanted: options without secrets
    digest: str = ""  # of these changes


def _untracked(rows: Sequence[RawRow]) -> Iterable[RawRow]:
    return rows


def import_file(
    services: Services, author: Author, file: ImportFile, track: Track = _untracked
) -> ImportResult:
    """Import a file, all or nothing. Raises BadFile with every problem, EditConflict."""
    engine = services.engine
    raw_rows, problems = file_forms.read(file.content, file.form, file.name)
    collector = file.collector
    if collector is None:
        collector = services.settings.default_collector
    if collector:
        _add_default_targets(services, raw_rows, collector)
    checker = RowChecker(services, file.name, credential_rows.kinds(engine))
    checker.stored = _targets_of_ports(services, raw_rows)
    rows = [checker.check(raw) for raw in track(raw_rows)]
    problems += checker.problems
    problems += _outside_site(services, author, file.name, raw_rows, rows)

    if problems:
        misfits = imports.check(engine, rows, update=file.update)
        located = checker.located(raw_rows, misfits)
        problems += _unreported(located, problems)
        raise _refusal(file.name, problems)

    site_names = [row.device.site for row in rows]
    created = new_sites.missing(engine, site_names)
    changes = ImportChanges(file.expected) if file.shows_changes or file.expected else None
    try:
        counts = imports.apply_import(
            engine,
            rows,
            update=file.update,
            dry_run=file.dry_run,
            author=author,
            changes=changes,
        )
    except imports.Refused as refused:
        problems = checker.located(raw_rows, refused.misfits)
        raise _refusal(file.name, problems) from None

    result = ImportResult(counts, created, checker.notes())
    if changes is None:
        return result
    shown = [_without_secrets(row, author) for row in changes.rows]
    return replace(result, changes=shown, digest=changes.digest)


def _without_secrets(row: RowChange, author: Author) -> RowChange:
    """Return a change with its options as their reader may see them."""
    fields = [
        FieldChange(name, _shown(before, author), _shown(after, author))
        if name == "options"
        else FieldChange(name, before, after)
        for name, before, after in row.fields
    ]
    return replace(row, fields=fields)


def _shown(options: Any, author: Author) -> Any:
    return options and option_secrets.shown_options(options, author.actor)


def _outside_site(
    services: Services,
    author: Author,
    file: str,
    raw_rows: Sequence[RawRow],
    rows: Sequence[Row],
) -> list[LineProblem]:
    """Return the problems of rows that an author of one site may not store."""
    site = author.actor.site if author.actor else None
    if site is None:
        return []
    usable = credential_rows.used_at(services.engine, site)
    stored = imports.existing_devices(services.engine, [row.device.name for row in rows])
    parents = {each.device: each.parent for each in parent_rows.listing(services.engine, site)}
    named = sorted({row.device.parent for row in rows if row.device.parent})
    sites_of = imports.existing_devices(services.engine, named)
    here = {name for name, of in sites_of.items() if of == site}
    here |= {row.device.name for row in rows if row.device.name not in sites_of}
    problems = []
    for raw, row in zip(raw_rows, rows, strict=True):
        now = stored.get(row.device.name, site)
        wanted = now if row.device.site is None and row.device.name in stored else row.device.site
        if {now, wanted} != {site}:
            message = f'you are limited to site "{site}"'
            problems.append(raw.problem(file, "site", message, f"give the site {site}"))
        parent = row.device.parent
        if parent and parent not in here and parents.get(row.device.name) != parent:
            message = f'no device named "{parent}" in site "{site}"'
            problems.append(raw.problem(file, "parent", message))
        used = {row.device.credential, *(target.credential for target in row.targets)}
        for name in sorted(name for name in used if name and name not in usable):
            message = f'credential "{name}" is not used at site "{site}"'
            problems.append(raw.problem(file, "credential", message))
    return problems


def _add_default_targets(services: Services, raw_rows: Sequence[RawRow], collector: str) -> None:
    bare = [raw for raw in raw_rows if raw.is_bare]
    names = [str(raw.fields.get("name")) for raw in bare]
    existing = imports.existing_devices(services.engine, names)
    for raw, name in zip(bare, names, strict=True):
        if name not in existing:
            target = raw.default_target or RawRow({}, raw.line)
            target.fields["collector"] = collector
            raw.targets.append(target)


def _targets_of_ports(
    services: Services, raw_rows: Sequence[RawRow]
) -> Mapping[str, Sequence[Target]]:
    """The stored targets of the devices whose addresses may have a port, by device."""
    names = [
        str(raw.fields.get("name"))
        for raw in raw_rows
        if ":" in str(raw.fields.get("address") or "")
    ]
    return target_rows.of_devices(services.engine, names) if names else {}


def _unreported(more: Iterable[LineProblem], problems: list[LineProblem]) -> list[LineProblem]:
    """The problems of fields that have no other problem."""
    reported = {(problem.line, problem.field) for problem in problems}
    return [problem for problem in more if (problem.line, problem.field) not in reported]


def _refusal(name: str, problems: list[LineProblem]) -> errors.BadFile:
    """Return the error that lists the problems of a file in groups."""
    groups = grouped(problems)
    count = sum(len(group.lines) for group in groups)

    text = f"{name}: {formatting.counted(count, 'problem')}"
    if len(groups) > GROUPS:
        text += f" of {len(groups)} kinds, {GROUPS} of which are listed"

    error = errors.BadFile(f"{text}; nothing was changed", hint="correct them and import again")
    error.details = groups[:GROUPS]
    return error


class RowChecker:
    """Checks raw rows. Checked option sets are cached: a fleet repeats a few of them many times."""

    def __init__(self, services: Services, file: str, kinds: Mapping[str, str]) -> None:
        self.problems: list[LineProblem] = []
        self._services = services
        self._file = file
        self._registry = services.registry
        self._kinds = kinds  # of the stored credentials, by name
        self._options: dict[str, Mapping[str, Any] | errors.InvalidInput] = {}
        self._uses: Counter[str] = Counter()  # of each set of options
        self._cautions: dict[str, Sequence[str]] = {}
        self._defaults: dict[str | None, Defaults] = {}
        #: The stored targets of devices whose addresses have a port, by device.
        self.stored: Mapping[str, Sequence[Target]] = {}

    def check(self, raw: RawRow) -> Row:
        """The checked row of a device and its targets; problems are collected."""
        device, problems = draft.device(raw.fields)
        self._report(raw, problems)
        if device.port is not None:
            self._place_port(raw, device.name, device.port)
        targets = [self._target(target, device) for target in raw.targets]
        collectors = [target.collector for target in targets]
        self._check_credential_exists(raw, device.credential, collectors)

        return Row(device, targets)

    def _place_port(self, raw: RawRow, device: str, port: int) -> None:
        """Make the port of the device's address an option of one of its targets."""
        given = [target.fields for target in raw.targets]
        stored = self.stored.get(device, ())
        try:
            place, fields = port_placement.of_row(self._registry, port, given, stored)
        except errors.InvalidInput as error:
            self._report(raw, [Problem("address", str(error), error.hint)])
            return
        if place >= len(given):
            raw.targets.append(RawRow(fields, raw.line))
        else:
            raw.targets[place].fields = fields

    def notes(self) -> list[str]:
        """The risks of the targets, each text once with the number of targets."""
        targets: Counter[str] = Counter()
        for key, number in self._uses.items():
            for text in self._cautions[key]:
                targets[text] += number
        return [
            f"{formatting.counted(number, 'target')}: {text}" for text, number in targets.items()
        ]

    def located(self, raw_rows: list[RawRow], misfits: list[Misfit]) -> list[LineProblem]:
        """The database's objections, with the lines they are about."""
        problems = []
        for index, problem, target in misfits:
            row = raw_rows[index]
            if row.fields.get("name"):
                raw = row if target is None else row.targets[target]
                problems.append(raw.problem(self._file, *problem))

        return problems

    def _target(self, raw: RawRow, device: DeviceDraft) -> TargetDraft:
        target, problems = draft.target(
            raw.fields,
            self._checked_options,
            self._services.staleness.check,
            self._defaults_of,
        )
        self._report(raw, problems)
        self._check_credential_exists(raw, target.credential, [target.collector])
        self._check_credential_kind(raw, target, device)

        return target

    def _check_credential_kind(self, raw: RawRow, target: TargetDraft, device: DeviceDraft) -> None:
        """Report a credential whose kind the target's collector does not accept."""
        credential = target.credential or device.credential or ""
        collector = target.collector or ""
        if credential not in self._kinds or collector not in self._registry.collectors:
            return

        kind = self._kinds[credential]
        try:
            collector_checks.check_kind(self._registry, collector, credential, kind)
        except errors.InvalidInput as error:
            # The device's credential may be of another kind if the target needs none.
            if target.credential or self._needs_credential(target):
                self._report(raw, [Problem("credential", str(error), error.hint)])

    def _needs_credential(self, target: TargetDraft) -> bool:
        """True for a target that needs one, and for a target whose wrong options decide nothing."""
        if target.options is None:
            return True
        collector = target.collector or ""
        return collector_checks.needs_credential(self._registry, collector, target.options)

    def _check_credential_exists(
        self, raw: RawRow, credential: str | None, collectors: list[str | None]
    ) -> None:
        """Report an unknown credential.

        The database would too, but its hint lacks the right kind.
        """
        if not credential or credential in self._kinds:
            return

        kind = "community"
        for name in collectors:
            collector = self._registry.collectors.get(name or "")
            if collector and collector.credentials:
                kind = collector.credentials[0].kind
                break

        message = f'no credential named "{credential}"'
        hint = f"poller credential add {credential} --kind {kind}"
        self._report(raw, [Problem("credential", message, hint)])

    def _report(self, raw: RawRow, problems: list[Problem]) -> None:
        """Collect problems with the lines of the row they are in."""
        self.problems += [raw.problem(self._file, *problem) for problem in problems]

    def _defaults_of(self, collector: str | None) -> Defaults:
        """The cached schedule defaults of a collector."""
        if collector not in self._defaults:
            self._defaults[collector] = collector_checks.defaults_of(self._services, collector)
        return self._defaults[collector]

    def _checked_options(self, collector: str, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """The stored form of options, from the cache. Raises InvalidInput."""
        key = json.dumps([collector, options], sort_keys=True, default=str)
        if key not in self._options:
            self._options[key] = self._stored_options(collector, options)

        found = self._options[key]
        if isinstance(found, errors.InvalidInput):
            raise found

        if key not in self._cautions:
            self._cautions[key] = collector_checks.cautions(self._registry, collector, found)
        self._uses[key] += 1
        return found

    def _stored_options(
        self, collector: str, options: Mapping[str, Any]
    ) -> Mapping[str, Any] | errors.InvalidInput:
        """The stored form of options, or the error of the check."""
        try:
            return collector_checks.stored_options(self._registry, collector, options)
        except errors.InvalidInput as error:
            return error
