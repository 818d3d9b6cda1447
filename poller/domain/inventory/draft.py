"""What somebody asks to be stored: a device and its targets, checked field by field.

None means "not given": a new row then gets the default, an existing row keeps its value. The empty
string is a value: a device without site or credential.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from poller import errors
from poller.domain.inventory import duration, naming
from poller.domain.inventory.problem import Problem as Problem
from poller.domain.scheduling import schedule
from poller.domain.scheduling.interval import Policy
from poller.domain.scheduling.schedule import Defaults, Schedule


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
    policy: Policy | None = None
    min_ms: int | None = None
    max_ms: int | None = None
    staleness: str | None = None
    #: What a new target, or one that changes its policy, gets where the draft says nothing.
    defaults: Defaults = field(default=schedule.NO_DEFAULTS, compare=False)

    @property
    def schedule(self) -> Schedule:
        return Schedule(
            self.policy, self.interval_ms, self.timeout_ms, self.min_ms, self.max_ms, self.staleness
        )


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
#: Validates the name of a staleness source.
CheckStaleness = Callable[[str], str]
#: The default schedule of a collector's targets; of any collector's, when it is not known.
DefaultsOf = Callable[[str | None], Defaults]


def _any_source(name: str) -> str:
    return name


def _no_defaults(collector: str | None) -> Defaults:
    return schedule.NO_DEFAULTS


def device(fields: Mapping[str, Any]) -> tuple[DeviceDraft, list[Problem]]:
    """A draft from raw values, and everything that is wrong with them. Absent or None: not given."""
    values, problems = _checked(fields, _DEVICE_FIELDS)
    if "name" not in values and not any(p.field == "name" for p in problems):
        problems.append(Problem("name", "the name is missing"))
    return DeviceDraft(**{"name": "", **values}), problems


def target(
    fields: Mapping[str, Any],
    check_options: CheckOptions,
    check_staleness: CheckStaleness = _any_source,
    defaults_of: DefaultsOf = _no_defaults,
) -> tuple[TargetDraft, list[Problem]]:
    """As `device`. Options are judged by their collector, staleness sources by those who know them."""
    values, problems = _checked(fields, _TARGET_FIELDS)
    collector = values.get("collector")
    if collector is not None:
        values.setdefault("name", collector)
        values["options"] = _options(values, check_options, problems)
    if "staleness" in values:
        _attempt(problems, "staleness", lambda: check_staleness(values["staleness"]))
    done, defaults = _attempt(problems, "collector", lambda: defaults_of(collector))
    wanted = TargetDraft(**values, **({"defaults": defaults} if done else {}))
    problems += schedule.problems(wanted.schedule, wanted.schedule)
    return wanted, problems


def raise_first(problems: list[Problem]) -> None:
    """For commands that take one thing at a time."""
    if problems:
        raise errors.InvalidInput(problems[0].message, hint=problems[0].hint)


def _checked(
    fields: Mapping[str, Any], known: Mapping[str, _Field]
) -> tuple[dict[str, Any], list[Problem]]:
    values: dict[str, Any] = {}
    problems: list[Problem] = []
    for key, raw in fields.items():
        if raw is None:
            continue
        if key not in known:
            problems.append(_unknown(key, known))
            continue
        stored_as, check = known[key]
        done, value = _attempt(problems, key, lambda check=check, raw=raw: check(raw))  # type: ignore[misc]
        if done:
            values[stored_as] = value
    return values, problems


def _unknown(key: str, known: Collection[str]) -> Problem:
    """A device of a file carries its targets with it, so they belong to the list."""
    names = [*known, *(["targets"] if "address" in known else [])]
    near = difflib.get_close_matches(key, names, n=1)
    hint = (f"did you mean {near[0]}? " if near else "") + "it takes " + ", ".join(names)
    return Problem(key, f'unknown field "{key}"', hint)


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


def _policy(raw: Any) -> Policy:
    known = [policy.value for policy in Policy]
    if raw not in known:
        raise errors.InvalidInput(f'unknown policy "{raw}"', hint="it takes " + " or ".join(known))
    return Policy(raw)


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
    "policy": ("policy", _policy),
    "min": ("min_ms", lambda raw: duration.interval_ms(raw, "min")),
    "max": ("max_ms", lambda raw: duration.interval_ms(raw, "max")),
    "staleness": ("staleness", lambda raw: naming.name(raw, "staleness source")),
    "enabled": ("enabled", _flag),
}
