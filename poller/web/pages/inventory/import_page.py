"""The page of an import: the text that was sent, its problems, or what it would change."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from poller import errors
from poller.domain.inventory import duration
from poller.domain.inventory.import_changes import FieldChange, RowChange
from poller.presentation import formatting
from poller.service.inventory.inventory_import import ImportResult
from poller.service.inventory_forms.file_forms import Form
from poller.service.inventory_forms.inventory_rows import LINES_NAMED
from poller.web.pages.device import target_form

#: Bytes of a file that a page takes: what a form sends is up to twice as long.
MOST_BYTES = 2_097_152
#: Rows of a preview that are listed.
MOST_ROWS = 200
FORMS: Sequence[Form] = ("csv", "yaml", "json")
#: The choice of no target for a device that names none.
NO_TARGET = "-"
_DURATIONS = ("interval", "min", "max", "timeout")
#: Fields of a new row that are not worth a line: they are what a new row has anyway.
_USUAL: Mapping[str, Sequence[Any]] = {"enabled": [True], "policy": ["fixed"]}


@dataclass(frozen=True, slots=True)
class ImportText:
    """The request of a person: the text of a file, and what to do with it."""

    text: str = ""
    form: str = ""  # "" is the one that the text seems to have
    updates: bool = True
    collector: str = ""  # "" is the default one, NO_TARGET none


@dataclass(frozen=True, slots=True)
class ProblemLine:
    """One problem on one line, or the same on several."""

    lines: str
    field: str
    message: str
    hint: str


@dataclass(frozen=True, slots=True)
class FieldLine:
    """One field of a row of the inventory. A new row has nothing before."""

    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class ChangeLine:
    """A device or target that would be added or changed."""

    name: str
    word: str
    is_new: bool
    fields: Sequence[FieldLine]


@dataclass(frozen=True, slots=True)
class Preview:
    """The plan of an import."""

    sentence: str
    notes: Sequence[str]
    rows: Sequence[ChangeLine]
    more: int
    digest: str
    has_changes: bool


@dataclass(frozen=True, slots=True)
class ImportView:
    """All of the page."""

    sent: ImportText
    forms: Sequence[str]
    collectors: Sequence[str]
    default: str  # the collector of devices without targets
    said: str = ""
    error: errors.PollerError | None = None
    problems: Sequence[ProblemLine] = ()
    preview: Preview | None = None
    command: str = ""
    most: int = MOST_BYTES
    most_text: str = formatting.size(MOST_BYTES)


def command(sent: ImportText, form: str) -> str:
    """Return the command that shows what the same file would change."""
    words = ["poller", "device", "import", f"FILE.{form or 'csv'}"]
    if sent.updates:
        words.append("--update")
    if sent.collector:
        words += ["--collector", "" if sent.collector == NO_TARGET else sent.collector]
    return shlex.join([*words, "--dry-run"])


def problem_lines(error: errors.BadFile) -> list[ProblemLine]:
    """Return the problems of a file by line."""
    return [_problem_line(each) for each in error.details]


def preview(done: ImportResult) -> Preview:
    """Return what an import would do: changed rows first, then new ones, in the file's order."""
    ordered = sorted(done.changes, key=lambda row: row.is_new)
    shown = [_change_line(row) for row in ordered[:MOST_ROWS]]
    more = len(ordered) - len(shown)
    return Preview(
        sentence=f"Would be done: {sentence(counts(done))}.",
        notes=[*done.notes, *(_site_note(site.name, site.near) for site in done.new_sites)],
        rows=shown,
        more=more,
        digest=done.digest,
        has_changes=bool(ordered),
    )


def counts(done: ImportResult) -> dict[str, int]:
    """Return the numbers of an import, by the names that an address has for them."""
    found = done.counts
    return {
        "added": found.added,
        "changed": found.updated,
        "unchanged": found.unchanged,
        "targets_added": found.targets_added,
        "targets_changed": found.targets_updated,
        "targets_unchanged": found.targets_unchanged,
    }


def sentence(numbers: Mapping[str, int]) -> str:
    """Return the numbers in words: `3 devices added, 1 changed, 7 left alone; 4 targets ...`."""
    return "; ".join(
        f"{formatting.counted(numbers.get(prefix + 'added', 0), noun)} added, "
        f"{formatting.exact(numbers.get(prefix + 'changed', 0))} changed, "
        f"{formatting.exact(numbers.get(prefix + 'unchanged', 0))} left alone"
        for prefix, noun in (("", "device"), ("targets_", "target"))
    )


def _problem_line(problem: Any) -> ProblemLine:
    numbers: Sequence[int] = getattr(problem, "lines", (problem.line,))
    text = ", ".join(map(str, numbers[:LINES_NAMED]))
    more = len(numbers) - LINES_NAMED
    if more > 0:
        text += f" and {formatting.exact(more)} more"
    where = "" if text == "0" else text
    return ProblemLine(where, problem.field, problem.message, problem.hint)


def _change_line(row: RowChange) -> ChangeLine:
    name = f"{row.device}/{row.target}" if row.target else row.device
    noun = "target" if row.target else "device"
    word = f"new {noun}" if row.is_new else noun
    fields = [line for each in row.fields for line in _field_lines(each, row.is_new)]
    return ChangeLine(name, word, row.is_new, fields)


def _field_lines(change: FieldChange, is_new: bool) -> list[FieldLine]:
    name, before, after = change
    if is_new and (not after or after in _USUAL.get(name, ())):
        return []
    if name != "options":
        return [FieldLine(name, _text(name, before), _text(name, after))]
    old, new = before or {}, after or {}
    keys = [key for key in {**old, **new} if old.get(key) != new.get(key)]
    text = target_form.text_of
    return [FieldLine(f"option {key}", text(old.get(key)), text(new.get(key))) for key in keys]


def _text(name: str, value: Any) -> str:
    """Return a value as a file has it."""
    if value is None:
        return ""
    if name in _DURATIONS:
        return duration.format_ms(value)
    if name == "requires":
        return " ".join(f"{key}={word}" for key, word in value.items())
    if isinstance(value, list):
        return " ".join(map(str, value))
    return target_form.text_of(value)


def _site_note(name: str, near: str | None) -> str:
    return f"makes the new site {name}" + (f"; did you mean {near}?" if near else "")
