"""What somebody asks to be stored: a device and its targets, checked field by field.

None means "not given": a new row then gets the default, an existing row keeps its value. The empty
string is a value: a device without site or credential.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from poller import errors
from poller.domain import duration, naming


class Problem(NamedTuple):
    """One thing that is wrong with one field."""

    field: str
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class TargetDraft:
    name: str | None = None
    collector: str | None = None
    options: Mapping[str, Any] | None = None
    credential: str | None = None
    requires: Mapping[str, str] | None = None
    interval_ms: int | None = None
    timeout_ms: int | None = None
    enabled: bool | None = None


@dataclass(frozen=True, slots=True)
class DeviceDraft:
    name: str
    address: str | None = None
    site: str | None = None
    credential: str | None = None
    tags: tuple[str, ...] | None = None
    requires: Mapping[str, str] | None = None
    enabled: bool | None = None


class UnknownCollector(errors.InvalidInput):
    """The collector is the problem, not its options."""


#: Validates a collector's name and options; returns the options to store. May raise UnknownCollector.
CheckOptions = Callable[[str, Mapping[str, Any]], Mapping[str, Any]]


def device(fields: Mapping[str, Any]) -> tuple[DeviceDraft, list[Problem]]:
    """A draft from raw values, and everything that is wrong with them. Absent or None: not given."""
    values, problems = _checked(fields, _DEVICE_FIELDS)
    if "name" not in values and not any(p.field == "name" for p in problems):
        problems.append(Problem("name", "the name is missing"))
    return DeviceDraft(**{"name": "", **values}), problems


def target(fields: Mapping[str, Any], check_options: CheckOptions) -> tuple[TargetDraft, list[Problem]]:
    """As `device`. Options are judged by their collector."""
    values, problems = _checked(fields, _TARGET_FIELDS)
    if "collector" in values:
        values.setdefault("name", values["collector"])
        values["options"] = _options(values, check_options, problems)
    interval, timeout = values.get("interval_ms"), values.get("timeout_ms")
    if interval is not None and timeout is not None:
        _attempt(problems, "timeout", lambda: duration.check_timeout(interval, timeout))
    return TargetDraft(**values), problems


def raise_first(problems: list[Problem]) -> None:
    """For commands that take one thing at a time."""
    if problems:
        raise errors.InvalidInput(problems[0].message, hint=problems[0].hint)


def _checked(fields: Mapping[str, Any], known: Mapping[str, _Field]) -> tuple[dict[str, Any], list[Problem]]:
    values: dict[str, Any] = {}
    problems: list[Problem] = []
    for key, raw in fields.items():
        if raw is None:
            continue
        if key not in known:
            problems.append(Problem(key, f'unknown field "{key}"', "it takes " + ", ".join(known)))
            continue
        stored_as, check = known[key]
        done, value = _attempt(problems, key, lambda check=check, raw=raw: check(raw))  # type: ignore[misc]
        if done:
            values[stored_as] = value
    return values, problems


def _attempt(problems: list[Problem], field: str, check: Callable[[], Any]) -> tuple[bool, Any]:
    try:
        return True, check()
    except errors.InvalidInput as error:
        problems.append(Problem(field, str(error), error.hint))
        return False, None


def _options(values: Mapping[str, Any], check: CheckOptions, problems: list[Problem]) -> Any:
    try:
        return check(values["collector"], values.get("options") or {})
    except errors.InvalidInput as error:
        field = "collector" if isinstance(error, UnknownCollector) else "options"
        problems.append(Problem(field, str(error), error.hint))
        return None


def _optional_name(what: str) -> Callable[[Any], str]:
    return lambda raw: raw if raw == "" else naming.name(raw, what)


def _mapping(raw: Any) -> dict[str, Any]:
    if not isinstance(raw, Mapping) or not all(isinstance(key, str) for key in raw):
        raise errors.InvalidInput("options must be a mapping of names to values")
    return dict(raw)


def _requires(raw: Any) -> dict[str, str]:
    if not isinstance(raw, Mapping | list | tuple):
        raise errors.InvalidInput(f'"{raw}" is no mapping of tags', hint="for example site: ams")
    return naming.requires(raw)


def _tags(raw: Any) -> tuple[str, ...]:
    if not isinstance(raw, list | tuple):
        raise errors.InvalidInput(f'"{raw}" is no list of tags')
    return naming.tags(raw)


def _flag(raw: Any) -> bool:
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if isinstance(raw, bool):
        return raw
    if str(raw).lower() not in words:
        raise errors.InvalidInput(f'"{raw}" is neither true nor false')
    return words[str(raw).lower()]


_Field = tuple[str, Callable[[Any], Any]]

_DEVICE_FIELDS: dict[str, _Field] = {
    "name": ("name", naming.name),
    "address": ("address", naming.address),
    "site": ("site", _optional_name("site")),
    "credential": ("credential", _optional_name("credential")),
    "tags": ("tags", _tags),
    "requires": ("requires", _requires),
    "enabled": ("enabled", _flag),
}

_TARGET_FIELDS: dict[str, _Field] = {
    "name": ("name", lambda raw: naming.name(raw, "target name")),
    "collector": ("collector", lambda raw: naming.name(raw, "collector")),
    "options": ("options", _mapping),
    "credential": ("credential", _optional_name("credential")),
    "requires": ("requires", _requires),
    "interval": ("interval_ms", duration.interval_ms),
    "timeout": ("timeout_ms", duration.timeout_ms),
    "enabled": ("enabled", _flag),
}
