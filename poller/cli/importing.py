"""From a file to the inventory: every line is judged before the first is stored, and all are stored at once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sqlalchemy.engine import Engine

from poller import bootstrap, errors
from poller.cli import backend, progress, words
from poller.cli.inventory_files import read
from poller.cli.inventory_rows import Complaint, Raw
from poller.collectors.registry import Registry
from poller.db import credentials, imports
from poller.db.imports import Imported, Misfit, Row
from poller.db.inventory import Notify
from poller.domain import draft


def run(
    engine: Engine, path: Path, form: str | None, *, update: bool, dry_run: bool, notify: Notify | None
) -> Imported:
    """Import a file. Raises BadFile with every complaint, having changed nothing."""
    raws, complaints = read(path, form)
    judge = _Judge(path.name, bootstrap.services().registry, credentials.kinds(engine))
    rows = [judge.row(raw) for raw in progress.track(raws, len(raws), "checking")]
    complaints += judge.complaints
    if complaints:
        said = {(complaint.line, complaint.field) for complaint in complaints}
        misfits = judge.place(raws, imports.check(engine, rows, update=update))
        complaints += [misfit for misfit in misfits if (misfit.line, misfit.field) not in said]
        raise _refusal(path.name, complaints)
    try:
        return imports.apply_import(engine, rows, update=update, dry_run=dry_run, notify=notify)
    except imports.Refused as refused:
        raise _refusal(path.name, judge.place(raws, refused.misfits)) from None


def _refusal(file: str, complaints: list[Complaint]) -> errors.BadFile:
    unique = sorted(set(complaints), key=lambda c: (c.line, c.field))
    many = "1 problem" if len(unique) == 1 else f"{len(unique):,} problems"
    refused = errors.BadFile(
        f"{file}: {many}; nothing was changed", hint=f"correct them, then: poller device import {file}"
    )
    refused.details = unique
    return refused


class _Judge:
    """Checks raw rows; remembers option sets, because a fleet repeats a few of them a thousand times."""

    def __init__(self, file: str, registry: Registry, kinds: Mapping[str, str]) -> None:
        self.complaints: list[Complaint] = []
        self._file, self._registry, self._kinds = file, registry, kinds
        self._options: dict[str, Mapping[str, Any] | errors.InvalidInput] = {}

    def row(self, raw: Raw) -> Row:
        device, problems = draft.device(raw.fields)
        self._complain(raw, problems)
        return Row(device, [self._target(target, device) for target in raw.targets])

    def place(self, raws: list[Raw], misfits: list[Misfit]) -> list[Complaint]:
        """Give the database's objections the lines they are about."""
        return [
            raws[number].complaint(self._file, problem.field, problem.message, problem.hint)
            for number, problem in misfits
            if raws[number].fields.get("name")
        ]

    def _target(self, raw: Raw, device: draft.DeviceDraft) -> draft.TargetDraft:
        target, problems = draft.target(raw.fields, self._checked)
        self._complain(raw, problems)
        used, collector = target.credential or device.credential or "", target.collector or ""
        if used in self._kinds and collector in self._registry.collectors:
            try:
                backend.check_kind(self._registry, collector, used, self._kinds[used])
            except errors.InvalidInput as error:
                self._complain(raw, [draft.Problem("credential", str(error), error.hint)])
        return target

    def _complain(self, raw: Raw, problems: list[draft.Problem]) -> None:
        self.complaints += [raw.complaint(self._file, p.field, p.message, p.hint) for p in problems]

    def _checked(self, collector: str, options: Mapping[str, Any]) -> Mapping[str, Any]:
        key = json.dumps([collector, options], sort_keys=True, default=str)
        if key not in self._options:
            self._options[key] = self._judged(collector, options)
        found = self._options[key]
        if isinstance(found, errors.InvalidInput):
            raise found
        return found

    def _judged(self, collector: str, options: Mapping[str, Any]) -> Mapping[str, Any] | errors.InvalidInput:
        try:
            texts = {name: value for name, value in options.items() if isinstance(value, str)}
            typed = words.typed(backend.options_model(self._registry, collector), texts)
            return backend.stored_options(self._registry, collector, {**options, **typed})
        except errors.InvalidInput as error:
            return error
