"""Drafts: a device or a target to be stored, checked field by field.

None means "not given": a new row then gets the default, an existing row keeps its value. The empty
string is a value: a device without site or credential.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from poller import errors
from poller.domain.inventory import duration, host_port, naming
from poller.domain.scheduling import schedule
from poller.domain.scheduling.interval import Policy
from poller.domain.scheduling.schedule import Defaults, Schedule
from poller.domain.scheduling.schedule import Problem as Problem


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
    #: The schedule of a new target, or of one that changes its policy, where the draft has None.
    defaults: Defaults = field(default=schedule.NO_DEFAULTS, compare=False)

    @property
    def schedule(self) -> Schedule:
        return Schedule(
            policy=self.policy,
            interval_ms=self.interval_ms,
            timeout_ms=self.timeout_ms,
            min_ms=self.min_ms,
            max_ms=self.max_ms,
            staleness=self.staleness,
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
    #: The name of the device through which this one is reached; "" is none.
    parent: str | None = None
    #: The port that was given with the address. It is stored as an option of one target.
    port: int | None = None


class UnknownCollector(errors.InvalidInput):
    """Raised by `CheckOptions` when the collector is at fault, not its options."""


#: Validates a collector's name and options, and returns the options to store.
#: Raises InvalidInput, and UnknownCollector when the collector is at fault.
CheckOptions = Callable[[str, Mapping[str, Any]], Mapping[str, Any]]
#: Validates the name of a staleness source.
CheckStaleness = Callable[[str], str]
#: Returns the default schedule of a collector's targets; None stands for any collector.
DefaultsOf = Callable[[str | None], Defaults]


def _any_source(name: str) -> str:
    return name


def _no_defaults(collector: str | None) -> Defaults:
    return schedule.NO_DEFAULTS


def device(fields: Mapping[str, Any]) -> tuple[DeviceDraft, list[Problem]]:
    """Return a draft of raw values, and every problem of them. An absent field counts as None."""
    draft, problems = device_changes(fields)
    if not draft.name and all(problem.field != "name" for problem in problems):
        problems.append(Problem("name", "the name is missing"))
    return draft, problems


def device_changes(fields: Mapping[str, Any]) -> tuple[DeviceDraft, list[Problem]]:
    """Return a draft for many devices, without a name, and every problem of it."""
    values, problems = _checked(fields, _DEVICE_FIELDS)
    values.setdefault("name", "")
    if "address" in values:
        values["address"], values["port"] = values["address"]
    return DeviceDraft(**values), problems


def target(
    fields: Mapping[str, Any],
    check_options: CheckOptions,
    check_staleness: CheckStaleness = _any_source,
    defaults_of: DefaultsOf = _no_defaults,
) -> tuple[TargetDraft, list[Problem]]:
    """Return a draft of raw values, and every problem of them. An absent field counts as None.

    The callables check options and staleness sources, which this module does not know.
    """
    values, problems = _checked(fields, _TARGET_FIELDS)
    collector = values.get("collector")
    if collector is not None:
        values.setdefault("name", collector)
        values["options"] = _options(values, check_options, problems)
    if "staleness" in values:
        _attempt(problems, "staleness", lambda: check_staleness(values["staleness"]))

    is_valid, defaults = _attempt(problems, "collector", lambda: defaults_of(collector))
    if is_valid:
        values["defaults"] = defaults
    draft = TargetDraft(**values)
    problems += schedule.problems(draft.schedule, draft.schedule)
    return draft, problems


def raise_first(problems: list[Problem]) -> None:
    """Raise InvalidInput for the first problem, for commands that store one row."""
    if not problems:
        return
    first = problems[0]
    raise errors.InvalidInput(first.message, hint=first.hint, field=first.field)


def _checked(
    fields: Mapping[str, Any], checks: Mapping[str, _Field]
) -> tuple[dict[str, Any], list[Problem]]:
    values: dict[str, Any] = {}
    problems: list[Problem] = []
    for key, raw in fields.items():
        if raw is None:
            continue
        if key not in checks:
            problems.append(_unknown(key, checks))
            continue
        column, check = checks[key]
        try:
            values[column] = check(raw)
        except errors.InvalidInput as error:
            problems.append(Problem(key, str(error), error.hint))
    return values, problems


def _unknown(key: str, checks: Collection[str]) -> Problem:
    names = list(checks)
    if "address" in checks:  # a device in a file has its targets with it
        names.append("targets")
    near = difflib.get_close_matches(key, names, n=1)
    correction = f"did you mean {near[0]}? " if near else ""
    return Problem(key, f'unknown field "{key}"', f"{correction}it takes {', '.join(names)}")


def _attempt(problems: list[Problem], field: str, check: Callable[[], Any]) -> tuple[bool, Any]:
    """Return whether the check passed, and its value. A refusal becomes a problem of the field."""
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


def _site(raw: Any) -> str:
    return raw if raw == "" else naming.checked_name(raw, "site")


def _credential(raw: Any) -> str:
    return raw if raw == "" else naming.checked_name(raw, "credential")


def _parent(raw: Any) -> str:
    return raw if raw == "" else naming.checked_name(raw, "parent")


def _target_name(raw: Any) -> str:
    return naming.checked_name(raw, "target name")


def _collector(raw: Any) -> str:
    return naming.checked_name(raw, "collector")


def _staleness(raw: Any) -> str:
    return naming.checked_name(raw, "staleness source")


def _min_ms(raw: Any) -> int:
    return duration.interval_ms(raw, "min")


def _max_ms(raw: Any) -> int:
    return duration.interval_ms(raw, "max")


def _mapping(raw: Any) -> dict[str, Any]:
    is_mapping = isinstance(raw, Mapping) and all(isinstance(key, str) for key in raw)
    if not is_mapping:
        raise errors.InvalidInput("options must be a mapping of names to values")
    return dict(raw)


def _requires(raw: Any) -> dict[str, str]:
    if not isinstance(raw, Mapping | list | tuple):
        raise errors.InvalidInput(f'"{raw}" is no mapping of tags', hint="for example site: ams")
    return naming.parse_requirements(raw)


def _tags(raw: Any) -> tuple[str, ...]:
    if not isinstance(raw, list | tuple):
        raise errors.InvalidInput(f'"{raw}" is no list of tags')
    return naming.checked_tags(raw)


def _policy(raw: Any) -> Policy:
    names = [policy.value for policy in Policy]
    if raw not in names:
        hint = f"it takes {' or '.join(names)}"
        raise errors.InvalidInput(f'unknown policy "{raw}"', hint=hint)
    return Policy(raw)


def _flag(raw: Any) -> bool:
    if isinstance(raw, bool):
        return raw
    word = str(raw).lower()
    if word in ("true", "yes", "1"):
        return True
    if word in ("false", "no", "0"):
        return False
    raise errors.InvalidInput(f'"{raw}" is neither true nor false')


#: The name of a field in a draft, and the check that returns its value or raises InvalidInput.
_Field = tuple[str, Callable[[Any], Any]]

_DEVICE_FIELDS: dict[str, _Field] = {
    "name": ("name", naming.checked_name),
    "address": ("address", host_port.parse),
    "site": ("site", _site),
    "credential": ("credential", _credential),
    "tags": ("tags", _tags),
    "requires": ("requires", _requires),
    "enabled": ("enabled", _flag),
    "parent": ("parent", _parent),
}

_TARGET_FIELDS: dict[str, _Field] = {
    "name": ("name", _target_name),
    "collector": ("collector", _collector),
    "options": ("options", _mapping),
    "credential": ("credential", _credential),
    "requires": ("requires", _requires),
    "interval": ("interval_ms", duration.interval_ms),
    "timeout": ("timeout_ms", duration.timeout_ms),
    "policy": ("policy", _policy),
    "min": ("min_ms", _min_ms),
    "max": ("max_ms", _max_ms),
    "staleness": ("staleness", _staleness),
    "enabled": ("enabled", _flag),
}
