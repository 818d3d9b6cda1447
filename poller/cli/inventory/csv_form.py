"""Inventories as CSV: one line per target; the lines of one device repeat its fields."""

from __future__ import annotations

import csv
import difflib
import io
import json
import shlex
from collections.abc import Callable, Iterator
from typing import Any, TextIO

from poller import errors
from poller.cli.inventory.inventory_rows import (
    DEVICE_FIELDS,
    TARGET_FIELDS,
    Complaint,
    Exported,
    Raw,
    Read,
    broken,
    device_fields,
    target_fields,
)

#: How target fields are called where a device field has taken the name.
NAMES = {
    "name": "target",
    "credential": "target_credential",
    "requires": "target_requires",
    "enabled": "target_enabled",
}
TARGET_COLUMNS = tuple(NAMES.get(name, name) for name in TARGET_FIELDS)
COLUMNS = DEVICE_FIELDS + TARGET_COLUMNS


def read(text: str, file: str) -> Read:
    first = text.partition("\n")[0]
    lines = csv.reader(
        io.StringIO(text), delimiter=";" if ";" in first and "," not in first else ",", strict=True
    )
    devices: dict[str, Raw] = {}
    complaints: list[Complaint] = []
    try:
        header = [name.strip().lower() for name in next(lines, [])]
        complaints += _header_complaints(header, file)
        if complaints:
            return Read([], complaints)
        before = lines.line_num
        for cells in lines:
            line, before = before + 1, lines.line_num
            if any(cell.strip() for cell in cells):
                _csv_line(
                    dict(zip(header, cells, strict=False)),
                    len(cells) - len(header),
                    line,
                    file,
                    devices,
                    complaints,
                )
    except csv.Error as error:
        raise broken(file, lines.line_num, str(error)) from None
    return Read(list(devices.values()), complaints)


def _header_complaints(header: list[str], file: str) -> list[Complaint]:
    found = [
        Complaint(file, 1, name, f'the column "{name}" is missing')
        for name in ("name",)
        if name not in header
    ]
    found += [
        Complaint(file, 1, name, f'the column "{name}" is there twice')
        for name in sorted(set(header))
        if header.count(name) > 1
    ]
    for name in header:
        if name not in COLUMNS:
            near = difflib.get_close_matches(name, COLUMNS, n=1)
            hint = f"did you mean {near[0]}?" if near else "there are " + ", ".join(COLUMNS)
            found.append(Complaint(file, 1, name or "header", f'unknown column "{name}"', hint))
    return found


def _csv_line(
    cells: dict[str, str],
    surplus: int,
    line: int,
    file: str,
    devices: dict[str, Raw],
    complaints: list[Complaint],
) -> None:
    if surplus:
        complaints.append(
            Complaint(
                file,
                line,
                "line",
                f"{abs(surplus)} cells {'too many' if surplus > 0 else 'missing'}",
            )
        )
        return
    values = {}
    for name, text in cells.items():
        try:
            values[name] = _CELLS.get(name, _plain_cell)(text.strip())
        except errors.InvalidInput as error:
            complaints.append(Complaint(file, line, name, str(error), error.hint))
    device = Raw({name: values[name] for name in DEVICE_FIELDS if name in values}, line)
    known = devices.setdefault(str(values.get("name") or f"\0{line}"), device)
    if known is not device:
        complaints += _contradictions(known, device, file)
    target = {
        name: values[NAMES.get(name, name)]
        for name in TARGET_FIELDS
        if NAMES.get(name, name) in values
    }
    if target.get("name") or target.get("collector"):
        known.targets.append(Raw(target, line, names=NAMES))


def _contradictions(known: Raw, again: Raw, file: str) -> Iterator[Complaint]:
    """Lines of one device must agree on the device."""
    for name, value in again.fields.items():
        if value != known.fields.get(name):
            yield again.complaint(
                file, name, f"differs from line {known.line}, which is about the same device"
            )


def _plain_cell(text: str) -> str | None:
    return text or None


def _words_cell(text: str) -> list[str]:
    return text.replace(";", " ").replace(",", " ").split()


def _options_cell(text: str) -> dict[str, Any] | None:
    """A JSON object, or words of the form key=value."""
    if not text:
        return None
    if text.startswith("{"):
        try:
            return dict(json.loads(text))
        except ValueError as error:
            raise errors.InvalidInput(f"not valid JSON: {error}") from None
    try:
        pairs = [word.partition("=") for word in shlex.split(text)]
    except ValueError as error:
        raise errors.InvalidInput(str(error)) from None
    for key, equals, _ in pairs:
        if not equals:
            raise errors.InvalidInput(f'"{key}" is not of the form key=value')
    return {key: value for key, _, value in pairs}


_CELLS: dict[str, Callable[[str], Any]] = {
    # An empty cell means: none. For the others it means: not given.
    "site": str,
    "credential": str,
    "target_credential": str,
    "tags": _words_cell,
    "requires": _words_cell,
    "target_requires": _words_cell,
    "options": _options_cell,
}


def write(file: TextIO, devices: Exported) -> int:
    lines = csv.DictWriter(file, COLUMNS, lineterminator="\n")
    lines.writeheader()
    count = 0
    for count, (device, targets) in enumerate(devices, 1):  # noqa: B007
        first = {name: _cell(name, value) for name, value in device_fields(device).items()}
        for columns in [target_fields(target) for target in targets] or [{}]:
            lines.writerow(
                first | {NAMES.get(name, name): _cell(name, columns[name]) for name in columns}
            )
    return count


def _cell(name: str, value: Any) -> str:
    if name == "options":
        return json.dumps(value, ensure_ascii=False) if value else ""
    if name == "requires":
        return " ".join(f"{key}={word}" for key, word in value.items())
    if isinstance(value, bool):
        return "true" if value else "false"
    return " ".join(value) if isinstance(value, list) else str(value)
