"""From a file to the inventory: every line is judged before the first is stored, and all are stored at once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sqlalchemy.engine import Engine

from poller import bootstrap, errors
from poller.cli.arguments import interval_arguments, key_values
from poller.cli.inventory import inventory_database, new_sites
from poller.cli.inventory.inventory_files import name_of, read
from poller.cli.inventory.inventory_rows import Complaint, Raw, grouped
from poller.cli.inventory.new_sites import NewSite
from poller.cli.output import progress
from poller.collectors.registry import Registry
from poller.db.inventory import credential_rows, imports
from poller.db.inventory.imports import Imported, Misfit, Row
from poller.db.inventory.inventory_feed import Notify
from poller.domain.inventory import draft
from poller.domain.inventory.draft import Problem
from poller.domain.scheduling.schedule import Defaults

#: Kinds of complaints that are listed; who has more corrects these first.
GROUPS = 20


def run(
    engine: Engine,
    path: Path,
    form: str | None,
    *,
    update: bool,
    dry_run: bool,
    notify: Notify | None,
) -> tuple[Imported, list[NewSite]]:
    """Import a file; the sites are those it made. Raises BadFile with every complaint, having changed nothing."""
    raws, complaints = read(path, form)
    judge = _Judge(name_of(path), bootstrap.services().registry, credential_rows.kinds(engine))
    rows = [judge.row(raw) for raw in progress.track(raws, len(raws), "checking")]
    complaints += judge.complaints
    if complaints:
        said = {(complaint.line, complaint.field) for complaint in complaints}
        misfits = judge.place(raws, imports.check(engine, rows, update=update))
        complaints += [misfit for misfit in misfits if (misfit.line, misfit.field) not in said]
        raise _refusal(path, update, complaints)
    made = new_sites.of(engine, [row.device.site for row in rows])
    try:
        return imports.apply_import(
            engine, rows, update=update, dry_run=dry_run, notify=notify
        ), made
    except imports.Refused as refused:
        raise _refusal(path, update, judge.place(raws, refused.misfits)) from None


def _refusal(path: Path, update: bool, complaints: list[Complaint]) -> errors.BadFile:
    groups = grouped(complaints)
    count = sum(len(group.lines) for group in groups)
    many = "1 problem" if count == 1 else f"{count:,} problems"
    cut = f" of {len(groups)} kinds, {GROUPS} of which are listed" if len(groups) > GROUPS else ""
    again = f"poller device import {path}" + (" --update" if update else "")
    refused = errors.BadFile(
        f"{name_of(path)}: {many}{cut}; nothing was changed", hint=f"correct them, then: {again}"
    )
    refused.details = groups[:GROUPS]
    return refused


class _Judge:
    """Checks raw rows; remembers option sets, because a fleet repeats a few of them a thousand times."""

    def __init__(self, file: str, registry: Registry, kinds: Mapping[str, str]) -> None:
        self.complaints: list[Complaint] = []
        self._file, self._registry, self._kinds = file, registry, kinds
        self._options: dict[str, Mapping[str, Any] | errors.InvalidInput] = {}
        self._defaults: dict[str | None, Defaults] = {}

    def row(self, raw: Raw) -> Row:
        device, problems = draft.device(raw.fields)
        self._complain(raw, problems)
        targets = [self._target(target, device) for target in raw.targets]
        self._check_known(raw, device.credential, [target.collector for target in targets])
        return Row(device, targets)

    def place(self, raws: list[Raw], misfits: list[Misfit]) -> list[Complaint]:
        """Give the database's objections the lines they are about."""
        return [
            (raws[row] if target is None else raws[row].targets[target]).complaint(
                self._file, *problem
            )
            for row, problem, target in misfits
            if raws[row].fields.get("name")
        ]

    def _target(self, raw: Raw, device: draft.DeviceDraft) -> draft.TargetDraft:
        target, problems = draft.target(
            raw.fields, self._checked, interval_arguments.check_staleness, self._defaults_of
        )
        self._complain(raw, problems)
        self._check_known(raw, target.credential, [target.collector])
        used, collector = target.credential or device.credential or "", target.collector or ""
        if used in self._kinds and collector in self._registry.collectors:
            try:
                inventory_database.check_kind(self._registry, collector, used, self._kinds[used])
            except errors.InvalidInput as error:
                if target.credential or self._needs_credential(target):
                    self._complain(raw, [Problem("credential", str(error), error.hint)])
        return target

    def _needs_credential(self, target: draft.TargetDraft) -> bool:
        """Of one with wrong options it cannot be said: their complaint is enough."""
        if target.options is None:
            return True
        return inventory_database.needs_credential(
            self._registry, target.collector or "", target.options
        )

    def _check_known(self, raw: Raw, credential: str | None, collectors: list[str | None]) -> None:
        """The database would find it too, but only here is known which kind the collectors take."""
        if credential and credential not in self._kinds:
            known = [self._registry.collectors.get(name or "") for name in collectors]
            kinds = [model.kind for each in known if each for model in each.credentials] or [
                "community"
            ]
            hint = f"poller credential add {credential} --kind {kinds[0]}"
            self._complain(
                raw, [Problem("credential", f'no credential named "{credential}"', hint)]
            )

    def _complain(self, raw: Raw, problems: list[Problem]) -> None:
        self.complaints += [raw.complaint(self._file, *problem) for problem in problems]

    def _defaults_of(self, collector: str | None) -> Defaults:
        if collector not in self._defaults:
            self._defaults[collector] = interval_arguments.defaults_of(collector)
        return self._defaults[collector]

    def _checked(self, collector: str, options: Mapping[str, Any]) -> Mapping[str, Any]:
        key = json.dumps([collector, options], sort_keys=True, default=str)
        if key not in self._options:
            self._options[key] = self._judged(collector, options)
        found = self._options[key]
        if isinstance(found, errors.InvalidInput):
            raise found
        return found

    def _judged(
        self, collector: str, options: Mapping[str, Any]
    ) -> Mapping[str, Any] | errors.InvalidInput:
        try:
            texts = {name: value for name, value in options.items() if isinstance(value, str)}
            typed = key_values.typed(
                inventory_database.options_model(self._registry, collector), texts
            )
            return inventory_database.stored_options(
                self._registry, collector, {**options, **typed}
            )
        except errors.InvalidInput as error:
            return error
