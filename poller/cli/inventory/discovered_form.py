"""Discovered devices as a file that `poller device import` reads: CSV, JSON or YAML.

Only addresses, collectors, options and the names of credentials are written: no text of a device.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TextIO

from poller.service.discovery.address_discovery import AddressResult, Suggested
from poller.service.inventory_forms import csv_form

_TARGET_COLUMNS = ("name", "collector", "options", "credential")


def write(file: TextIO, form: str, found: Iterable[AddressResult]) -> int:
    """Write one device per address, named by its address and port. Returns how many."""
    devices = [_device(each) for each in found if each.suggestions]
    if form == "csv":
        _write_csv(file, devices)
    elif form == "json":
        lines = [json.dumps(device) for device in devices]
        file.write("[\n" + ",\n".join(lines) + "\n]\n")
    else:
        import yaml

        yaml.safe_dump(devices, file, sort_keys=False)
    return len(devices)


def _device(result: AddressResult) -> dict[str, Any]:
    targets = _targets(result.suggestions)
    return {"name": result.name, "address": result.address, "targets": targets}


def _targets(suggestions: Sequence[Suggested]) -> list[dict[str, Any]]:
    """The targets of a device; a second one of the same collector gets a number."""
    targets = []
    numbers: dict[str, int] = {}
    for each in suggestions:
        number = numbers[each.collector] = numbers.get(each.collector, 0) + 1
        name = each.collector if number == 1 else f"{each.collector}{number}"
        target: dict[str, Any] = {
            "name": name,
            "collector": each.collector,
            "options": dict(each.options),
        }
        if each.credential:
            target["credential"] = each.credential
        targets.append(target)
    return targets


def _write_csv(file: TextIO, devices: Sequence[Mapping[str, Any]]) -> None:
    names = {column: csv_form.NAMES.get(column, column) for column in _TARGET_COLUMNS}
    lines = csv.DictWriter(file, ("name", "address", *names.values()), lineterminator="\n")
    lines.writeheader()
    for device in devices:
        for target in device["targets"]:
            cells = {names[key]: value for key, value in target.items()}
            cells[names["options"]] = json.dumps(target["options"]) if target["options"] else ""
            lines.writerow({"name": device["name"], "address": device["address"], **cells})
