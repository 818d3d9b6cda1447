"""The rows of an inventory file: raw fields with the lines they stand on, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from poller import errors
from poller.domain.inventory import duration
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.scheduling.interval import Policy

DEVICE_FIELDS = ("name", "address", "site", "credential", "tags", "requires", "enabled")
TARGET_FIELDS = (
    "name",
    "collector",
    "options",
    "policy",
    "interval",
    "min",
    "max",
    "staleness",
    "timeout",
    "credential",
    "requires",
    "enabled",
)

#: Lines of a group that are named; the rest is counted.
LINES_NAMED = 3

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


class Group(NamedTuple):
    """The same complaint about many lines, told once."""

    file: str
    line: int  # the first
    field: str
    message: str
    hint: str
    lines: tuple[int, ...]

    def __str__(self) -> str:
        if len(self.lines) == 1:
            return str(Complaint(*self[:5]))
        named, more = self.lines[:LINES_NAMED], len(self.lines) - LINES_NAMED
        where = ", ".join(map(str, named)) + (f" and {more:,} more" if more > 0 else "")
        return f"{self.file}: line {where}: {self.field}: {self.message}" + (
            f"; {self.hint}" if self.hint else ""
        )


def grouped(complaints: Iterable[Complaint]) -> list[Group]:
    """Equal complaints together, in the order of their first lines."""
    lines: dict[Complaint, set[int]] = {}
    for complaint in complaints:
        lines.setdefault(complaint._replace(line=0), set()).add(complaint.line)
    groups = [Group(*said._replace(line=min(at)), tuple(sorted(at))) for said, at in lines.items()]
    return sorted(groups, key=lambda group: (group.line, group.field))


@dataclass
class Raw:
    """The fields of a device or target as they stand in the file, and where."""

    fields: dict[str, Any]
    line: int
    lines: Mapping[str, int] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)  # what a field is called in this file
    targets: list[Raw] = field(default_factory=list)

    def complaint(self, file: str, name: str, message: str, hint: str = "") -> Complaint:
        return Complaint(
            file, self.lines.get(name, self.line), self.names.get(name, name), message, hint
        )


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
        "requires": _sorted(device.requires or {}),
        "enabled": device.enabled,
    }


def target_fields(target: TargetDraft) -> dict[str, Any]:
    """In the order of TARGET_FIELDS; a fixed interval has no bounds to tell of."""
    policy = target.policy or Policy.FIXED
    bounds = {"min": target.min_ms, "max": target.max_ms}
    return {
        "name": target.name,
        "collector": target.collector,
        "options": _sorted(target.options or {}),
        "policy": policy.value,
        "interval": duration.format_ms(target.interval_ms or 0),
        **{name: duration.format_ms(value) for name, value in bounds.items() if value is not None},
        **({"staleness": target.staleness} if target.staleness is not None else {}),
        "timeout": duration.format_ms(target.timeout_ms or 0),
        "credential": target.credential,
        "requires": _sorted(target.requires or {}),
        "enabled": target.enabled,
    }


def _sorted(value: Any) -> Any:
    """Keys in one order, whatever order a database gives them back in: equal inventories are equal files."""
    if isinstance(value, Mapping):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list | tuple) else value
