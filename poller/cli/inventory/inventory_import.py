"""Imports an inventory file: all rows are checked first, then all are stored at once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy.engine import Engine

from poller import bootstrap, errors
from poller.cli.arguments import key_values, schedule_options
from poller.cli.inventory import inventory_database, inventory_files, new_sites
from poller.cli.inventory.inventory_rows import LineProblem, RawRow, grouped
from poller.cli.inventory.new_sites import NewSite
from poller.cli.output import progress
from poller.collectors.registry import Registry
from poller.db.inventory import credential_rows, imports
from poller.db.inventory.imports import Imported, Misfit, Row
from poller.db.inventory.inventory_feed import Author
from poller.domain.inventory import draft
from poller.domain.inventory.draft import DeviceDraft, Problem, TargetDraft
from poller.domain.scheduling.schedule import Defaults
from poller.presentation import formatting

#: Maximum number of problem groups that are listed.
GROUPS = 20


@dataclass(frozen=True, slots=True)
class ImportResult:
    counts: Imported
    new_sites: Sequence[NewSite]


def import_file(
    engine: Engine,
    path: Path,
    form: str | None,
    *,
    collector: str,
    update: bool,
    dry_run: bool,
    author: Author,
) -> ImportResult:
    """Import a file, all or nothing. Raises BadFile with every problem.

    New devices of a file that says nothing about targets get one with this collector, if any.
    """
    raw_rows, problems = inventory_files.read(path, form)
    if collector:
        _add_default_targets(engine, raw_rows, collector)
    registry = bootstrap.services().registry
    file = inventory_files.display_name(path)
    checker = RowChecker(file, registry, credential_rows.kinds(engine))
    tracked = progress.track(raw_rows, len(raw_rows), "checking")
    rows = [checker.check(raw) for raw in tracked]
    problems += checker.problems

    if problems:
        misfits = imports.check(engine, rows, update=update)
        located = checker.located(raw_rows, misfits)
        problems += _unreported(located, problems)
        raise _refusal(path, update, problems)

    site_names = [row.device.site for row in rows]
    created = new_sites.missing(engine, site_names)
    try:
        counts = imports.apply_import(engine, rows, update=update, dry_run=dry_run, author=author)
    except imports.Refused as refused:
        problems = checker.located(raw_rows, refused.misfits)
        raise _refusal(path, update, problems) from None

    return ImportResult(counts, created)


def _add_default_targets(engine: Engine, raw_rows: Sequence[RawRow], collector: str) -> None:
    bare = [raw for raw in raw_rows if raw.is_bare]
    names = [str(raw.fields.get("name")) for raw in bare]
    existing = imports.existing_devices(engine, names)
    for raw, name in zip(bare, names, strict=True):
        if name not in existing:
            target = raw.default_target or RawRow({}, raw.line)
            target.fields["collector"] = collector
            raw.targets.append(target)


def _unreported(more: Iterable[LineProblem], problems: list[LineProblem]) -> list[LineProblem]:
    """The problems of fields that have no other problem."""
    reported = {(problem.line, problem.field) for problem in problems}
    return [problem for problem in more if (problem.line, problem.field) not in reported]


def _refusal(path: Path, update: bool, problems: list[LineProblem]) -> errors.BadFile:
    """The error that lists the problems of a file in groups."""
    groups = grouped(problems)
    count = sum(len(group.lines) for group in groups)

    text = f"{inventory_files.display_name(path)}: {formatting.counted(count, 'problem')}"
    if len(groups) > GROUPS:
        text += f" of {len(groups)} kinds, {GROUPS} of which are listed"

    command = f"poller device import {path}" + (" --update" if update else "")
    error = errors.BadFile(f"{text}; nothing was changed", hint=f"correct them, then: {command}")
    error.details = groups[:GROUPS]

    return error


class RowChecker:
    """Checks raw rows. Checked option sets are cached: a fleet repeats a few of them many times."""

    def __init__(self, file: str, registry: Registry, kinds: Mapping[str, str]) -> None:
        self.problems: list[LineProblem] = []
        self._file = file
        self._registry = registry
        self._kinds = kinds  # of the stored credentials, by name
        self._options: dict[str, Mapping[str, Any] | errors.InvalidInput] = {}
        self._defaults: dict[str | None, Defaults] = {}

    def check(self, raw: RawRow) -> Row:
        """The checked row of a device and its targets; problems are collected."""
        device, problems = draft.device(raw.fields)
        self._report(raw, problems)
        targets = [self._target(target, device) for target in raw.targets]
        collectors = [target.collector for target in targets]
        self._check_credential_exists(raw, device.credential, collectors)

        return Row(device, targets)

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
            schedule_options.check_staleness,
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
            inventory_database.check_kind(self._registry, collector, credential, kind)
        except errors.InvalidInput as error:
            # The device's credential may be of another kind if the target needs none.
            if target.credential or self._needs_credential(target):
                self._report(raw, [Problem("credential", str(error), error.hint)])

    def _needs_credential(self, target: TargetDraft) -> bool:
        """True for a target that needs one, and for a target whose wrong options decide nothing."""
        if target.options is None:
            return True
        collector = target.collector or ""
        return inventory_database.needs_credential(self._registry, collector, target.options)

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
            self._defaults[collector] = schedule_options.defaults_of(collector)
        return self._defaults[collector]

    def _checked_options(self, collector: str, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """The stored form of options, from the cache. Raises InvalidInput."""
        key = json.dumps([collector, options], sort_keys=True, default=str)
        if key not in self._options:
            self._options[key] = self._stored_options(collector, options)

        found = self._options[key]
        if isinstance(found, errors.InvalidInput):
            raise found

        return found

    def _stored_options(
        self, collector: str, options: Mapping[str, Any]
    ) -> Mapping[str, Any] | errors.InvalidInput:
        """The stored form of options, or the error of the check."""
        try:
            model = inventory_database.options_model(self._registry, collector)
            texts = {name: value for name, value in options.items() if isinstance(value, str)}
            typed = key_values.typed(model, texts)
            merged = {**options, **typed}
            return inventory_database.stored_options(self._registry, collector, merged)
        except errors.InvalidInput as error:
            return error
