"""Inventories as files: CSV (one line per target), JSON or YAML (a list of devices with their targets).

Reading keeps the line of every device and field, so that each complaint can say where; it judges form only.
"""

from __future__ import annotations

import csv
import difflib
import io
import json
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from poller import errors
from poller.domain import duration
from poller.domain.draft import DeviceDraft, TargetDraft

FORMS = {".csv": "csv", ".json": "json", ".yaml": "yaml", ".yml": "yaml"}

DEVICE_FIELDS = ("name", "address", "site", "credential", "tags", "requires", "enabled")
TARGET_FIELDS = ("name", "collector", "options", "interval", "timeout", "credential", "requires", "enabled")
#: How target fields are called where a device field has taken the name.
CSV_NAMES = {
    "name": "target",
    "credential": "target_credential",
    "requires": "target_requires",
    "enabled": "target_enabled",
}
TARGET_COLUMNS = tuple(CSV_NAMES.get(name, name) for name in TARGET_FIELDS)
COLUMNS = DEVICE_FIELDS + TARGET_COLUMNS


class Complaint(NamedTuple):
    """One thing wrong in one place of a file."""

    file: str
    line: int
    field: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        return f"{where}: {self.field}: {self.message}" + (f"; {self.hint}" if self.hint else "")


class BadFile(errors.InvalidInput):
    """The file was refused as a whole; `details` has every complaint."""

    code = "P202"

    def __init__(self, message: str, cause: str = "", hint: str = "") -> None:
        super().__init__(message, cause, hint)
        self.details: list[Complaint] = []


@dataclass
class Raw:
    """The fields of a device or target as they stand in the file, and where."""

    fields: dict[str, Any]
    line: int
    lines: Mapping[str, int] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)  # what a field is called in this file
    targets: list[Raw] = field(default_factory=list)

    def complaint(self, file: str, name: str, message: str, hint: str = "") -> Complaint:
        return Complaint(file, self.lines.get(name, self.line), self.names.get(name, name), message, hint)


class Read(NamedTuple):
    devices: list[Raw]
    complaints: list[Complaint]


def form_of(path: Path) -> str:
    """csv, json or yaml, by the file's name."""
    if path.suffix.lower() in FORMS:
        return FORMS[path.suffix.lower()]
    raise errors.InvalidInput(
        f'cannot tell the format of "{path.name}" by its name', hint="add --format csv, json or yaml"
    )


def read(path: Path, form: str | None = None) -> Read:
    """Every device of a file. Raises BadFile when it is not of its form at all."""
    reader = {"csv": _read_csv, "json": _read_json, "yaml": _read_yaml}[form or form_of(path)]
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise _broken(path.name, line, f"not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise errors.InvalidInput(f"cannot read {path}", cause=error.strerror or "") from None
    return reader(text, path.name)


def _broken(file: str, line: int, message: str) -> BadFile:
    refused = BadFile(f"{file} cannot be read; nothing was changed")
    refused.details = [Complaint(file, line, "file", message)]
    return refused


def _read_csv(text: str, file: str) -> Read:
    first = text.partition("\n")[0]
    lines = csv.reader(io.StringIO(text), delimiter=";" if ";" in first and "," not in first else ",", strict=True)
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
                    dict(zip(header, cells, strict=False)), len(cells) - len(header), line, file, devices, complaints
                )
    except csv.Error as error:
        raise _broken(file, lines.line_num, str(error)) from None
    return Read(list(devices.values()), complaints)


def _header_complaints(header: list[str], file: str) -> list[Complaint]:
    found = [Complaint(file, 1, name, f'the column "{name}" is missing') for name in ("name",) if name not in header]
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
    cells: dict[str, str], surplus: int, line: int, file: str, devices: dict[str, Raw], complaints: list[Complaint]
) -> None:
    if surplus:
        complaints.append(
            Complaint(file, line, "line", f"{abs(surplus)} cells {'too many' if surplus > 0 else 'missing'}")
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
    target = {name: values[CSV_NAMES.get(name, name)] for name in TARGET_FIELDS if CSV_NAMES.get(name, name) in values}
    if target.get("name") or target.get("collector"):
        known.targets.append(Raw(target, line, names=CSV_NAMES))


def _contradictions(known: Raw, again: Raw, file: str) -> Iterator[Complaint]:
    """Lines of one device must agree on the device."""
    for name, value in again.fields.items():
        if value != known.fields.get(name):
            yield again.complaint(file, name, f"differs from line {known.line}, which is about the same device")


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


def _read_json(text: str, file: str) -> Read:
    """Item by item, which is how each one's line is known."""
    decoder = json.JSONDecoder()
    blank = re.compile(r"[\s,]*")
    opening = re.match(r'\s*(?:\{\s*"devices"\s*:\s*)?\[', text)
    if not opening:
        raise _broken(file, 1, 'a list of devices, or an object with a list "devices", is expected')
    found: list[Any] = []
    lines: list[int] = []
    try:
        json.loads(text)  # commas, brackets and whatever comes behind
        place, line, counted = opening.end(), 1, 0
        while text[(place := _end(blank, text, place))] != "]":
            line, counted = line + text.count("\n", counted, place), place
            item, place = decoder.raw_decode(text, place)
            found.append(item)
            lines.append(line)
    except json.JSONDecodeError as error:
        raise _broken(file, error.lineno, f"column {error.colno}: {error.msg}") from None
    return _structured(((item, line, {}) for item, line in zip(found, lines, strict=True)), file)


def _end(pattern: re.Pattern[str], text: str, place: int) -> int:
    match = pattern.match(text, place)
    return match.end() if match else place


def _read_yaml(text: str, file: str) -> Read:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
    try:
        top = loader.get_single_node()
        if isinstance(top, yaml.MappingNode):
            top = next((value for key, value in top.value if key.value == "devices"), None)
        if not isinstance(top, yaml.SequenceNode):
            raise _broken(file, 1, 'a list of devices, or a mapping with a list "devices", is expected')
        items = [(loader.construct_object(n, deep=True), n.start_mark.line + 1, _lines(n)) for n in top.value]
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        reason = getattr(error, "problem", None) or "not valid YAML"
        raise _broken(file, mark.line + 1 if mark else 1, str(reason)) from None
    finally:
        loader.dispose()
    return _structured(items, file)


def _lines(node: Any, path: str = "") -> dict[str, int]:
    """The line of every key, targets included: {"site": 3, "targets.0.interval": 9}."""
    found: dict[str, int] = {}
    if hasattr(node, "value") and isinstance(node.value, list):
        for number, part in enumerate(node.value):
            if isinstance(part, tuple):
                name = f"{path}{part[0].value}"
                found[name] = part[0].start_mark.line + 1
                found |= _lines(part[1], f"{name}.") if name == "targets" else {}
            else:
                found[f"{path}{number}"] = part.start_mark.line + 1
                found |= _lines(part, f"{path}{number}.")
    return found


def _structured(items: Iterable[tuple[Any, int, Mapping[str, int]]], file: str) -> Read:
    """Devices that carry their targets with them."""
    devices: list[Raw] = []
    complaints: list[Complaint] = []
    for item, line, lines in items:
        if not isinstance(item, dict):
            complaints.append(Complaint(file, line, "device", f"a device must be a mapping, not {_shown(item)}"))
            continue
        device = Raw({key: value for key, value in item.items() if key != "targets"}, line, lines)
        for number, target in enumerate(item.get("targets") or ()):
            if isinstance(target, dict):
                device.targets.append(_target(target, number, device))
            else:
                complaints.append(device.complaint(file, f"targets.{number}", "a target must be a mapping"))
        devices.append(device)
    return Read(devices, complaints)


def _target(fields: dict[str, Any], number: int, device: Raw) -> Raw:
    prefix = f"targets.{number}."
    lines = {name.removeprefix(prefix): line for name, line in device.lines.items() if name.startswith(prefix)}
    names = {name: f"targets[{number}].{name}" for name in {*fields, *TARGET_FIELDS}}
    return Raw(fields, device.lines.get(f"targets.{number}", device.line), lines, names)


def _shown(item: Any) -> str:
    return json.dumps(item, default=str)[:40]


Exported = Iterable[tuple[DeviceDraft, list[TargetDraft]]]


def write(file: TextIO, form: str, devices: Exported) -> int:
    """Write in a form that `read` gives back unchanged; returns how many devices."""
    return {"csv": _write_csv, "json": _write_json, "yaml": _write_yaml}[form](file, devices)


def _write_csv(file: TextIO, devices: Exported) -> int:
    lines = csv.DictWriter(file, COLUMNS, lineterminator="\n")
    lines.writeheader()
    count = 0
    for count, (device, targets) in enumerate(devices, 1):  # noqa: B007
        first = {name: _cell(value) for name, value in _device_fields(device).items()}
        for columns in [_target_fields(target) for target in targets] or [{}]:
            lines.writerow(first | {CSV_NAMES.get(name, name): _cell(columns[name]) for name in columns})
    return count


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False) if value else ""
    return " ".join(value) if isinstance(value, list) else str(value)


def _write_json(file: TextIO, devices: Exported) -> int:
    file.write("[")
    count = 0
    for count, (device, targets) in enumerate(devices, 1):
        item = {**_device_fields(device), "targets": [_target_fields(target) for target in targets]}
        file.write(",\n" if count > 1 else "\n")
        file.write(json.dumps(item, ensure_ascii=False))
    file.write("\n]\n")
    return count


def _write_yaml(file: TextIO, devices: Exported) -> int:
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    count = 0
    for count, (device, targets) in enumerate(devices, 1):  # noqa: B007
        item = {**_device_fields(device), "targets": [_target_fields(target) for target in targets]}
        yaml.dump([item], file, dumper, sort_keys=False, allow_unicode=True)
    if not count:
        file.write("[]\n")
    return count


def _device_fields(device: DeviceDraft) -> dict[str, Any]:
    return {
        "name": device.name,
        "address": device.address,
        "site": device.site,
        "credential": device.credential,
        "tags": list(device.tags or ()),
        "requires": dict(device.requires or {}),
        "enabled": device.enabled,
    }


def _target_fields(target: TargetDraft) -> dict[str, Any]:
    return {
        "name": target.name,
        "collector": target.collector,
        "options": dict(target.options or {}),
        "interval": duration.format_ms(target.interval_ms or 0),
        "timeout": duration.format_ms(target.timeout_ms or 0),
        "credential": target.credential,
        "requires": dict(target.requires or {}),
        "enabled": target.enabled,
    }
