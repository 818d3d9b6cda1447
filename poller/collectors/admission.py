"""Checks a collector against the contract when it is loaded. Connects to no device."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from types import MemberDescriptorType
from typing import Any

from pydantic_core import to_jsonable_python

from poller import errors, plugins
from poller.collectors.api import (
    SERVED,
    Collector,
    Costs,
    Credential,
    KeepsSessions,
    Options,
    Scheduled,
)
from poller.collectors.credentials import BUILT_IN
from poller.domain.inventory import api_version, naming
from poller.domain.inventory.api_version import Served
from poller.domain.scheduling import schedule
from poller.domain.scheduling.schedule import Schedule

#: Attributes of every collector.
_REQUIRED = ("name", "api_version", "Options", "credentials", "collect")
#: Attributes of the contract. Polls and heartbeats read them often, so none may be a property.
_STATIC = (
    "name", "Options", "credentials", "collect", "blocking", "isolated", "cost", "schedule",
    "session_key", "open_session", "close_session", "discover", "help_texts", "check_options",
    "brings_credential", "close", "cautions", "clear_secrets",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Admitted:
    """A usable collector, the contract version in use, its stated versions, and any notice."""

    collector: Collector
    api_version: int
    stated: tuple[int, int]
    notice: str


def admit(
    collector: Any,
    name: str,
    served: Mapping[int, Served] = SERVED,
    kinds: Mapping[str, type[Credential]] = BUILT_IN,
) -> Admitted:
    """Check a collector against the contract, as far as that is possible without a device.

    `kinds` holds the credential kinds in use and their models. Raises ConfigError with the fault.
    """
    _check_complete(collector, served)
    _check_name(collector, name)
    stated = api_version.span(collector.api_version)
    version = api_version.choose(stated, served, "collector")
    collector = served[version].adapt(collector)
    if not isinstance(collector, Collector):
        raise errors.ConfigError("it does not implement poller.collectors.api.Collector")

    _check_options_class(collector)
    _check_static(collector)
    _check_options_shown(collector)
    _check_abilities(collector)
    _check_cost(collector)
    _check_credentials(collector, kinds)
    _check_schedule(collector)
    notice = api_version.notice(version, served, "collector")
    return Admitted(collector, version, stated, notice)


def _check_complete(collector: Any, served: Mapping[int, Served]) -> None:
    """Require all attributes of the current contract; of an older one only name and version."""
    current = getattr(collector, "api_version", None) in (None, max(served))
    required = _REQUIRED if current else _REQUIRED[:2]
    missing = [attribute for attribute in required if not hasattr(collector, attribute)]
    if missing:
        hint = "its author finds the contract in docs/plugins.md"
        raise errors.ConfigError(f"it lacks {', '.join(missing)}", hint=hint)


def _check_name(collector: Any, name: str) -> None:
    if collector.name != name:
        raise errors.ConfigError(f'it calls itself "{collector.name}"')
    fault = naming.word_fault(name)  # the name is part of the name of a queue
    if fault:
        raise errors.ConfigError(f"its name {fault}")


def _check_options_class(collector: Collector) -> None:
    model: Any = collector.Options
    if not (isinstance(model, type) and issubclass(model, Options)):
        raise errors.ConfigError(
            "its Options is not a class made from poller.collectors.api.Options"
        )


def _check_static(collector: Collector) -> None:
    """Refuse properties: one that raises later would fail the heartbeat of the whole worker."""
    for name in _STATIC:
        attribute = inspect.getattr_static(collector, name, None)
        computed = hasattr(type(attribute), "__get__") and not callable(attribute)
        if computed and not isinstance(attribute, classmethod | MemberDescriptorType):
            hint = f"its author writes {name} = ... in the class, or sets it when it is made"
            raise errors.ConfigError(f"its {name} is a property", hint=hint)


def _check_options_shown(collector: Collector) -> None:
    """Require options that can be shown: every list of collectors shows all options."""
    model = collector.Options
    try:
        for field in model.model_fields.values():
            if not field.is_required():
                to_jsonable_python(field.get_default(call_default_factory=True, validated_data={}))
        model.model_json_schema()
    except Exception as error:  # noqa: BLE001  door: a plugin may raise anything
        hint = "its author gives it types and defaults that JSON can say"
        raise errors.ConfigError(
            "its Options cannot be shown", plugins.error_text(error), hint
        ) from None


def _check_abilities(collector: Collector) -> None:
    """Refuse combinations that would fail at the first poll."""
    for ability in ("blocking", "isolated"):
        if not isinstance(getattr(collector, ability, False), bool):
            raise errors.ConfigError(f"its {ability} is neither True nor False")

    blocking = getattr(collector, "blocking", False)
    if inspect.isgeneratorfunction(collector.collect) and not blocking:
        hint = "its author adds blocking = True to run it in threads, or writes async def"
        raise errors.ConfigError("its collect is a plain generator", hint=hint)
    if inspect.iscoroutinefunction(collector.collect):
        hint = "its author writes yield where it says return"
        raise errors.ConfigError("its collect yields nothing", hint=hint)
    if inspect.isasyncgenfunction(collector.collect) and blocking:
        text = "it says blocking, and its collect is an async generator"
        hint = "its author removes blocking = True, or writes def instead of async def"
        raise errors.ConfigError(text, hint=hint)
    if blocking and isinstance(collector, KeepsSessions):
        text = "it says blocking, and keeps sessions: a thread cannot wait for one"
        hint = "its author keeps connections in poll.memory or in the instance, or writes async def"
        raise errors.ConfigError(text, hint=hint)


def _check_cost(collector: Collector) -> None:
    """Require a cost that can divide the size of a batch."""
    if not isinstance(collector, Costs):
        return
    cost: Any = collector.cost
    is_number = isinstance(cost, int | float) and not isinstance(cost, bool)
    if not is_number or not isfinite(cost) or cost < 1:
        hint = "its author writes a number from 1 (an ordinary poll)"
        raise errors.ConfigError(f"its cost is {cost!r:.40}", hint=hint)


def _check_credentials(collector: Collector, kinds: Mapping[str, type[Credential]]) -> None:
    """Require credential models whose kinds no other model has.

    The kind selects the model that reads a stored credential.
    """
    models: Any = collector.credentials
    if not isinstance(models, tuple) or not all(_is_credential_model(model) for model in models):
        raise errors.ConfigError("its credentials are not a tuple of credential models")

    taken = dict(kinds)
    for model in models:
        kind = getattr(model, "kind", None)
        fault = "is missing" if kind is None else naming.word_fault(kind)
        hint = f'its author writes kind = "..." in {model.__name__}, a word that is its own'
        if fault:
            text = f"the kind of its credential model {model.__name__} {fault}"
            raise errors.ConfigError(text, hint=hint)
        if taken.setdefault(str(kind), model) is not model:
            text = (
                f'its credential model {model.__name__} has the kind "{kind}", '
                "which another model has"
            )
            raise errors.ConfigError(text, hint=hint)


def _is_credential_model(model: Any) -> bool:
    return isinstance(model, type) and issubclass(model, Credential)


def _check_schedule(collector: Collector) -> None:
    """Refuse a default schedule that could never be stored."""
    if not isinstance(collector, Scheduled):
        return
    if not isinstance(collector.schedule, Schedule):
        raise errors.ConfigError("its schedule is not a poller.collectors.api.Schedule")
    resolved = schedule.resolve(collector.schedule, None, schedule.NO_DEFAULTS)
    for problem in schedule.problems(collector.schedule, resolved):
        raise errors.ConfigError(f"its schedule: {problem.message}", hint=problem.hint)
