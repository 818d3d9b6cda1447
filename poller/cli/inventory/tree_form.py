"""Inventories as JSON or YAML: a list of devices that carry their targets with them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, TextIO

from poller.cli.inventory.inventory_rows import (
    TARGET_FIELDS,
    Complaint,
    Exported,
    Raw,
    Read,
    broken,
    device_fields,
    target_fields,
)


def read_json(text: str, file: str) -> Read:
    """Item by item, which is how each one's line is known."""
    decoder = json.JSONDecoder()
    blank = re.compile(r"[\s,]*")
    opening = re.match(r'\s*(?:\{\s*"devices"\s*:\s*)?\[', text)
    if not opening:
        raise broken(file, 1, 'a list of devices, or an object with a list "devices", is expected')
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
        raise broken(file, error.lineno, f"column {error.colno}: {error.msg}") from None
    return _structured(((item, line, {}) for item, line in zip(found, lines, strict=True)), file)


def _end(pattern: re.Pattern[str], text: str, place: int) -> int:
    match = pattern.match(text, place)
    return match.end() if match else place


def read_yaml(text: str, file: str) -> Read:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
    try:
        top = loader.get_single_node()
        if isinstance(top, yaml.MappingNode):
            top = next((value for key, value in top.value if key.value == "devices"), None)
        if not isinstance(top, yaml.SequenceNode):
            raise broken(
                file, 1, 'a list of devices, or a mapping with a list "devices", is expected'
            )
        items = [
            (loader.construct_object(n, deep=True), n.start_mark.line + 1, _lines(n))
            for n in top.value
        ]
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        reason = getattr(error, "problem", None) or "not valid YAML"
        raise broken(file, mark.line + 1 if mark else 1, str(reason)) from None
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
            complaints.append(
                Complaint(file, line, "device", f"a device must be a mapping, not {_shown(item)}")
            )
            continue
        device = Raw({key: value for key, value in item.items() if key != "targets"}, line, lines)
        for number, target in enumerate(item.get("targets") or ()):
            if isinstance(target, dict):
                device.targets.append(_target(target, number, device))
            else:
                complaints.append(
                    device.complaint(file, f"targets.{number}", "a target must be a mapping")
                )
        devices.append(device)
    return Read(devices, complaints)


def _target(fields: dict[str, Any], number: int, device: Raw) -> Raw:
    prefix = f"targets.{number}."
    lines = {
        name.removeprefix(prefix): line
        for name, line in device.lines.items()
        if name.startswith(prefix)
    }
    names = {name: f"targets[{number}].{name}" for name in {*fields, *TARGET_FIELDS}}
    return Raw(fields, device.lines.get(f"targets.{number}", device.line), lines, names)


def _shown(item: Any) -> str:
    return json.dumps(item, default=str)[:40]


def write_json(file: TextIO, devices: Exported) -> int:
    file.write("[")
    count = 0
    for count, (device, targets) in enumerate(devices, 1):
        item = {**device_fields(device), "targets": [target_fields(target) for target in targets]}
        file.write(",\n" if count > 1 else "\n")
        file.write(json.dumps(item, ensure_ascii=False))
    file.write("\n]\n")
    return count


def write_yaml(file: TextIO, devices: Exported) -> int:
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    count = 0
    for count, (device, targets) in enumerate(devices, 1):  # noqa: B007
        item = {**device_fields(device), "targets": [target_fields(target) for target in targets]}
        yaml.dump([item], file, dumper, sort_keys=False, allow_unicode=True)
    if not count:
        file.write("[]\n")
    return count
