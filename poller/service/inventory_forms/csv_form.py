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
from poller.presentation.history import spreadsheet_cells
from poller.service.inventory_forms import inventory_rows, value_limits
from poller.service.inventory_forms.inventory_rows import (
    DEVICE_FIELDS,
    TARGET_FIELDS,
    ExportedDevices,
    LineProblem,
    ParsedFile,
    RawRow,
)

#: Columns of target fields whose names are taken by device fields.
NAMES = {
    "name": "target",
    "credential": "target_credential",
    "requires": "target_requires",
    "enabled": "target_enabled",
}
TARGET_COLUMNS = tuple(NAMES.get(name, name) for name in TARGET_FIELDS)
COLUMNS = DEVICE_FIELDS + TARGET_COLUMNS


def read(text: str, file: str) -> ParsedFile:
    """Parse a CSV file with a header line; a header without commas may use semicolons."""
    first_line = text.partition("\n")[0]
    delimiter = ";" if ";" in first_line and "," not in first_line else ","
    lines = csv.reader(io.StringIO(text), delimiter=delimiter, strict=True)

    try:
        header = [name.strip().lower() for name in next(lines, [])]
        problems = list(_header_problems(header, file))
        if problems:
            return ParsedFile([], problems)

        parser = _LineParser(file, header)
        last_line = lines.line_num
        for cells in lines:
            line = last_line + 1
            last_line = lines.line_num
            if any(cell.strip() for cell in cells):
                parser.add(cells, line)
    except csv.Error as error:
        raise inventory_rows.unreadable(file, lines.line_num, str(error)) from None

    return ParsedFile(list(parser.devices.values()), parser.problems)


def _header_problems(header: list[str], file: str) -> Iterator[LineProblem]:
    """Problems of the header line: missing, repeated and unknown columns."""
    if "name" not in header:
        yield LineProblem(file, 1, "name", 'the column "name" is missing')

    for name in sorted(set(header)):
        if header.count(name) > 1:
            yield LineProblem(file, 1, name, f'the column "{name}" is there twice')

    for name in header:
        if name not in COLUMNS:
            near = difflib.get_close_matches(name, COLUMNS, n=1)
            hint = f"did you mean {near[0]}?" if near else "there are " + ", ".join(COLUMNS)
            yield LineProblem(file, 1, name or "header", f'unknown column "{name}"', hint)


class _LineParser:
    """Collects the devices and problems of a file line by line."""

    def __init__(self, file: str, header: list[str]) -> None:
        self.devices: dict[str, RawRow] = {}
        self.problems: list[LineProblem] = []
        self._file = file
        self._header = header
        self._has_targets = not {"collector", NAMES["name"]}.isdisjoint(header)

    def add(self, cells: list[str], line: int) -> None:
        """Add the device and the target of one line, or the problems of the line."""
        surplus = len(cells) - len(self._header)
        if surplus:
            verb = "too many" if surplus > 0 else "missing"
            message = f"{abs(surplus)} cells {verb}"
            self.problems.append(LineProblem(self._file, line, "line", message))
            return

        values = self._values(cells, line)
        device = self._device(values, line)

        target = {}
        for name in TARGET_FIELDS:
            column = NAMES.get(name, name)
            if column in values:
                target[name] = values[column]

        if target.get("name") or target.get("collector"):
            device.targets.append(RawRow(target, line, names=NAMES))
        elif device.is_bare:
            names = {name: column for name, column in NAMES.items() if name in target}
            device.default_target = RawRow(target, line, names=names)

    def _values(self, cells: list[str], line: int) -> dict[str, Any]:
        """The parsed cells by column; a cell with a problem is absent."""
        values = {}
        for name, text in zip(self._header, cells, strict=True):
            parse = _CELLS.get(name, _plain_cell)
            try:
                values[name] = parse(spreadsheet_cells.read(text.strip()))
            except errors.InvalidInput as error:
                self.problems.append(LineProblem(self._file, line, name, str(error), error.hint))

        return values

    def _device(self, values: dict[str, Any], line: int) -> RawRow:
        """The row of the line's device; later lines of a device must agree with its first."""
        fields = {name: values[name] for name in DEVICE_FIELDS if name in values}
        repeated = RawRow(fields, line, is_bare=not self._has_targets)
        unnamed = f"\0{line}"
        device = self.devices.setdefault(str(values.get("name") or unnamed), repeated)

        if device is repeated:
            return device

        for name, value in repeated.fields.items():
            if value != device.fields.get(name):
                message = f"differs from line {device.line}, which is about the same device"
                self.problems.append(repeated.problem(self._file, name, message))

        return device


def _plain_cell(text: str) -> str | None:
    return text or None


def _words_cell(text: str) -> list[str]:
    """Words separated by spaces, commas or semicolons."""
    return text.replace(";", " ").replace(",", " ").split()


def options_cell(text: str) -> dict[str, Any] | None:
    """Options as a JSON object, or as words of the form key=value. Raises InvalidInput."""
    if not text:
        return None
    if text.startswith("{"):
        try:
            return dict(value_limits.load_json(text))
        except ValueError as error:
            raise errors.InvalidInput(f"not valid JSON: {error}") from None

    try:
        words = shlex.split(text)
    except ValueError as error:
        raise errors.InvalidInput(str(error)) from None

    options = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise errors.InvalidInput(f'"{key}" is not of the form key=value')
        options[key] = value

    return options


_CELLS: dict[str, Callable[[str], Any]] = {
    # An empty cell of these columns means "none"; an empty cell of other columns means "not given".
    "site": str,
    "credential": str,
    "target_credential": str,
    "parent": str,
    "tags": _words_cell,
    "requires": _words_cell,
    "target_requires": _words_cell,
    "options": options_cell,
}


def write(file: TextIO, devices: ExportedDevices, raw: bool = False) -> int:
    """Write the devices; a device without targets has one line. Returns the number of devices.

    Unless `raw`, no cell is a formula for a spreadsheet.
    """
    lines = csv.DictWriter(file, COLUMNS, lineterminator="\n")
    lines.writeheader()

    def cell(name: str, value: Any) -> str:
        return spreadsheet_cells.written(_cell(name, value), raw)

    count = 0
    for device, targets in devices:
        count += 1
        fields = inventory_rows.device_fields(device)
        device_cells = {name: cell(name, value) for name, value in fields.items()}

        if not targets:
            lines.writerow(device_cells)

        for target in targets:
            fields = inventory_rows.target_fields(target)
            cells = {NAMES.get(name, name): cell(name, value) for name, value in fields.items()}
            lines.writerow(device_cells | cells)

    return count


def _cell(name: str, value: Any) -> str:
    """The text of a field's value; JSON for options."""
    if name == "options":
        return json.dumps(value, ensure_ascii=False) if value else ""
    if name == "requires":
        words = [f"{key}={word}" for key, word in value.items()]
        return " ".join(words)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return " ".join(value)

    return str(value)
