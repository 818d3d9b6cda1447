"""Inventories as JSON or YAML: a list of devices, each with a list of its targets."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TextIO

from poller import errors
from poller.service.inventory_forms import inventory_rows, value_limits
from poller.service.inventory_forms.inventory_rows import (
    TARGET_FIELDS,
    ExportedDevices,
    LineProblem,
    ParsedFile,
    RawRow,
)

_OPENING = re.compile(r'\s*(?:\{\s*"devices"\s*:\s*)?\[')
_BLANK = re.compile(r"[\s,]*")


@dataclass(frozen=True, slots=True)
class _Item:
    """One item of the list, its line, and the lines of its keys where they are known."""

    value: Any
    line: int
    lines: Mapping[str, int] = field(default_factory=dict)


def read_json(text: str, file: str) -> ParsedFile:
    """Parse a JSON file item by item: that gives the line of each item."""
    opening = _OPENING.match(text)
    if not opening:
        message = 'a list of devices, or an object with a list "devices", is expected'
        raise inventory_rows.unreadable(file, 1, message)

    try:
        value_limits.load_json(text)  # checks commas, brackets and the text after the list
        items = list(_json_items(text, opening.end()))
    except errors.InvalidInput as error:
        raise inventory_rows.unreadable(file, 1, error.message) from None
    except json.JSONDecodeError as error:
        message = f"column {error.colno}: {error.msg}"
        raise inventory_rows.unreadable(file, error.lineno, message) from None

    return _parsed(items, file)


def _json_items(text: str, start: int) -> Iterator[_Item]:
    """The items of a JSON list one by one, each with its line."""
    decoder = json.JSONDecoder()

    line = 1
    counted_to = 0
    position = _skip_blank(text, start)
    while text[position] != "]":
        line += text.count("\n", counted_to, position)
        counted_to = position

        value, end = decoder.raw_decode(text, position)
        yield _Item(value, line)
        position = _skip_blank(text, end)


def _skip_blank(text: str, position: int) -> int:
    match = _BLANK.match(text, position)
    return match.end() if match else position


def read_yaml(text: str, file: str) -> ParsedFile:
    """Parse a YAML file; its nodes give the line of every key."""
    import yaml

    from poller.collectors.snmp.modules import yaml_text

    try:
        yaml_text.read(text, file, value_limits.MAX_VALUES)  # refuses what would take all memory
    except yaml_text.BadYaml as error:
        raise inventory_rows.unreadable(file, error.line, error.reason) from None

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
    try:
        top = loader.get_single_node()
        if isinstance(top, yaml.MappingNode):
            top = next((value for key, value in top.value if key.value == "devices"), None)

        if not isinstance(top, yaml.SequenceNode):
            message = 'a list of devices, or a mapping with a list "devices", is expected'
            raise inventory_rows.unreadable(file, 1, message)

        items = []
        for node in top.value:
            value = loader.construct_object(node, deep=True)
            line = node.start_mark.line + 1
            items.append(_Item(value, line, _lines(node)))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else 1
        reason = getattr(error, "problem", None) or "not valid YAML"
        raise inventory_rows.unreadable(file, line, str(reason)) from None
    finally:
        loader.dispose()

    return _parsed(items, file)


def _lines(node: Any, path: str = "") -> dict[str, int]:
    """The line of every key, targets included: {"site": 3, "targets.0.interval": 9}."""
    parts = getattr(node, "value", None)
    if not isinstance(parts, list):
        return {}

    found: dict[str, int] = {}
    for number, part in enumerate(parts):
        if isinstance(part, tuple):
            key, value = part
            name = f"{path}{key.value}"
            found[name] = key.start_mark.line + 1
            if name == "targets":
                found |= _lines(value, f"{name}.")
        else:
            name = f"{path}{number}"
            found[name] = part.start_mark.line + 1
            found |= _lines(part, f"{name}.")

    return found


def _parsed(items: Iterable[_Item], file: str) -> ParsedFile:
    """The devices and targets of a list, and the items that are no mappings."""
    devices: list[RawRow] = []
    problems: list[LineProblem] = []
    for item in items:
        if not isinstance(item.value, dict):
            message = f"a device must be a mapping, not {_excerpt(item.value)}"
            problems.append(LineProblem(file, item.line, "device", message))
            continue

        fields = {key: value for key, value in item.value.items() if key != "targets"}
        device = RawRow(fields, item.line, item.lines, is_bare="targets" not in item.value)

        for number, target in enumerate(item.value.get("targets") or ()):
            if isinstance(target, dict):
                device.targets.append(_target(target, number, device))
            else:
                name = f"targets.{number}"
                problems.append(device.problem(file, name, "a target must be a mapping"))

        devices.append(device)

    return ParsedFile(devices, problems)


def _target(fields: dict[str, Any], number: int, device: RawRow) -> RawRow:
    """The raw row of a target, with the lines and names of its fields."""
    prefix = f"targets.{number}."

    lines = {}
    for name, line in device.lines.items():
        if name.startswith(prefix):
            lines[name.removeprefix(prefix)] = line

    names = {name: f"targets[{number}].{name}" for name in {*fields, *TARGET_FIELDS}}
    first_line = device.lines.get(f"targets.{number}", device.line)
    return RawRow(fields, first_line, lines, names)


def _excerpt(value: Any) -> str:
    return json.dumps(value, default=str)[:40]


def write_json(file: TextIO, devices: ExportedDevices) -> int:
    """Write the devices, one per line. Returns their number."""
    count = 0
    separator = "[\n"
    for item in _exported(devices):
        file.write(separator + json.dumps(item, ensure_ascii=False))
        separator = ",\n"
        count += 1

    file.write("\n]\n" if count else "[\n]\n")
    return count


def write_yaml(file: TextIO, devices: ExportedDevices) -> int:
    """Write the devices one by one. Returns their number."""
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

    count = 0
    for item in _exported(devices):
        yaml.dump([item], file, dumper, sort_keys=False, allow_unicode=True)
        count += 1

    if not count:
        file.write("[]\n")

    return count


def _exported(devices: ExportedDevices) -> Iterator[dict[str, Any]]:
    """One mapping per device, its targets included."""
    for device, targets in devices:
        fields = inventory_rows.device_fields(device)
        yield {**fields, "targets": [inventory_rows.target_fields(target) for target in targets]}
