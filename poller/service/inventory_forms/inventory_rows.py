"""The rows of an inventory file: raw fields with their lines, and the problems found in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, NamedTuple

from poller import errors
from poller.domain.inventory import duration
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.scheduling.interval import Policy

DEVICE_FIELDS = ("name", "address", "site", "credential", "tags", "requires", "enabled", "parent")
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

#: Lines of a problem group that are named; the others are counted.
LINES_NAMED = 3

ExportedDevices = Iterable[tuple[DeviceDraft, list[TargetDraft]]]


class LineProblem(NamedTuple):
    """One problem of one field on one line of a file; line 0 stands for the whole file."""

    file: str
    line: int
    field: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        return f"{where}: {_sentence(self.field, self.message, self.hint)}"


class ProblemGroup(NamedTuple):
    """The same problem on several lines; `line` is the first of them."""

    file: str
    line: int
    field: str
    message: str
    hint: str
    lines: tuple[int, ...]

    def __str__(self) -> str:
        if len(self.lines) == 1:
            return str(LineProblem(self.file, self.line, self.field, self.message, self.hint))

        where = ", ".join(map(str, self.lines[:LINES_NAMED]))
        more = len(self.lines) - LINES_NAMED
        if more > 0:
            where += f" and {more:,} more"

        return f"{self.file}: line {where}: {_sentence(self.field, self.message, self.hint)}"


def _sentence(name: str, message: str, hint: str) -> str:
    """`interval: must be positive; for example 60s`"""
    sentence = f"{name}: {message}"
    return f"{sentence}; {hint}" if hint else sentence


def grouped(problems: Iterable[LineProblem]) -> list[ProblemGroup]:
    """Equal problems as one group each, in the order of their first lines."""
    lines: dict[LineProblem, set[int]] = {}
    for problem in problems:
        without_line = problem._replace(line=0)
        lines.setdefault(without_line, set()).add(problem.line)

    groups = []
    for problem, numbers in lines.items():
        group = ProblemGroup(
            file=problem.file,
            line=min(numbers),
            field=problem.field,
            message=problem.message,
            hint=problem.hint,
            lines=tuple(sorted(numbers)),
        )
        groups.append(group)

    return sorted(groups, key=attrgetter("line", "field"))


@dataclass
class RawRow:
    """The unchecked fields of a device or target, and the lines they stand on."""

    fields: dict[str, Any]
    line: int
    lines: Mapping[str, int] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)  # the names of fields in this file
    targets: list[RawRow] = field(default_factory=list)
    #: Whether the file says nothing about targets, so that a new device gets the default one.
    is_bare: bool = False
    #: What the file says about the default target all the same, such as its interval.
    default_target: RawRow | None = None

    def problem(self, file: str, name: str, message: str, hint: str = "") -> LineProblem:
        """A problem of one field, with its line and its name in this file."""
        line = self.lines.get(name, self.line)
        return LineProblem(file, line, self.names.get(name, name), message, hint)


class ParsedFile(NamedTuple):
    devices: list[RawRow]
    problems: list[LineProblem]


def unreadable(file: str, line: int, message: str) -> errors.BadFile:
    """The error for a file that cannot be parsed."""
    error = errors.BadFile(f"{file} cannot be read; nothing was changed")
    error.details = [LineProblem(file, line, "file", message)]
    return error


def device_fields(device: DeviceDraft) -> dict[str, Any]:
    """The exported fields of a device, in the order of DEVICE_FIELDS."""
    return {
        "name": device.name,
        "address": device.address,
        "site": device.site,
        "credential": device.credential,
        "tags": list(device.tags or ()),
        "requires": _sorted(device.requires or {}),
        "enabled": device.enabled,
        "parent": device.parent or "",
    }


def target_fields(target: TargetDraft) -> dict[str, Any]:
    """The exported fields of a target, in the order of TARGET_FIELDS; a fixed one has no bounds."""
    policy = target.policy or Policy.FIXED
    fields: dict[str, Any] = {
        "name": target.name,
        "collector": target.collector,
        "options": _sorted(target.options or {}),
        "policy": policy.value,
        "interval": duration.format_ms(target.interval_ms or 0),
    }
    if target.min_ms is not None:
        fields["min"] = duration.format_ms(target.min_ms)

    if target.max_ms is not None:
        fields["max"] = duration.format_ms(target.max_ms)

    if target.staleness is not None:
        fields["staleness"] = target.staleness

    fields |= {
        "timeout": duration.format_ms(target.timeout_ms or 0),
        "credential": target.credential,
        "requires": _sorted(target.requires or {}),
        "enabled": target.enabled,
    }
    return fields


def _sorted(value: Any) -> Any:
    """The value with sorted keys, so that equal inventories give equal files."""
    if isinstance(value, Mapping):
        return {key: _sorted(value[key]) for key in sorted(value)}
    if isinstance(value, list | tuple):
        return [_sorted(item) for item in value]
    return value
