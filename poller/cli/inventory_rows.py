"""The rows of an inventory file: raw fields with the lines they stand on, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from poller import errors
from poller.domain import duration
from poller.domain.draft import DeviceDraft, TargetDraft

DEVICE_FIELDS = ("name", "address", "site", "credential", "tags", "requires", "enabled")
TARGET_FIELDS = ("name", "collector", "options", "interval", "timeout", "credential", "requires", "enabled")

Exported = Iterable[tuple[DeviceDraft, list[TargetDraft]]]


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


def broken(file: str, line: int, message: str) -> errors.BadFile:
    refused = errors.BadFile(f"{file} cannot be read; nothing was changed")
    refused.details = [Complaint(file, line, "file", message)]
    return refused


def device_fields(device: DeviceDraft) -> dict[str, Any]:
    return {
        "name": device.name,
        "address": device.address,
        "site": device.site,
        "credential": device.credential,
        "tags": list(device.tags or ()),
        "requires": dict(device.requires or {}),
        "enabled": device.enabled,
    }


def target_fields(target: TargetDraft) -> dict[str, Any]:
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
