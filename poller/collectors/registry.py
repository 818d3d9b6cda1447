"""Which collectors are installed? Entry points, loaded once per process; a broken one never harms the others."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint
from math import isfinite
from types import MemberDescriptorType
from typing import Any, NamedTuple

import pydantic
from pydantic_core import to_jsonable_python

from poller import errors, plugins
from poller.collectors.api import (
    SERVED,
    ChecksOptions,
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
from poller.plugins import Broken

GROUP = "poller.collectors"
#: What every collector has.
_MUST_HAVE = ("name", "api_version", "Options", "credentials", "collect")
#: These and its abilities are asked for in every poll or heartbeat.
_ASKED_OFTEN = (
    "name", "Options", "credentials", "collect", "blocking", "isolated", "cost", "schedule", "session_key",
    "open_session", "close_session", "discover", "help_texts", "check_options", "brings_credential", "close",
)  # fmt: skip
#: Kinds of mistakes in options, as pydantic calls them, and what was wanted instead.
_WANTED = {
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_parsing": "a number",
    "float_type": "a number",
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "string_type": "a text",
}


class Admitted(NamedTuple):
    """A collector that can be used, the version of the contract it is used by, and what to say of that, if anything."""

    collector: Collector
    api_version: int
    stated: tuple[int, int]
    notice: str


@dataclass(frozen=True)
class Registry:
    collectors: Mapping[str, Collector] = field(default_factory=dict)
    broken: tuple[Broken, ...] = ()
    distributions: Mapping[str, str] = field(default_factory=dict)
    #: By name: the version of the contract each is used by, those it works with (the first and the last), and for which
    #: of them that will end, in a sentence.
    api_versions: Mapping[str, int] = field(default_factory=dict)
    stated: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    deprecated: Mapping[str, str] = field(default_factory=dict)

    def get(self, name: str) -> Collector:
        """The collector of that name; the error names the nearest one, or why it is broken."""
        if name in self.collectors:
            return self.collectors[name]
        for broken in self.broken:
            if broken.name == name:
                text = f'collector "{name}" ({broken.distribution}) cannot be used'
                raise errors.CollectorMissing(text, cause=broken.reason, hint=broken.hint)
        near = difflib.get_close_matches(name, self.collectors, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise errors.CollectorMissing(
            f'unknown collector "{name}"',
            cause="installed: " + ", ".join(sorted(self.collectors)),
            hint=hint + "poller collectors",
        )

    def schedule(self, name: str) -> Schedule:
        """What the collector declares for targets whose owner says nothing; empty when it does not."""
        collector = self.collectors.get(name)
        return collector.schedule if isinstance(collector, Scheduled) else Schedule()

    @property
    def keeping_sessions(self) -> tuple[str, ...]:
        """Names of the collectors that keep sessions."""
        return tuple(
            name for name, found in self.collectors.items() if isinstance(found, KeepsSessions)
        )

    @property
    def costs(self) -> dict[str, float]:
        """What a poll of a collector costs, of those that cost more than an ordinary one."""
        return {
            name: float(found.cost)
            for name, found in self.collectors.items()
            if isinstance(found, Costs)
        }

    def options(self, name: str, raw: Mapping[str, Any]) -> Options:
        """Validated options; the error names the field, what was wrong and what it takes."""
        model = self.get(name).Options
        try:
            return model.model_validate(dict(raw))
        except pydantic.ValidationError as error:
            raise errors.InvalidInput(_explain(name, model, error)) from None
        except (
            BaseException
        ) as error:  # a validator may raise anything, SystemExit too: its target's trouble only
            raise _unchecked(name, error) from error

    def checked_options(self, name: str, raw: Mapping[str, Any]) -> Options:
        """The same, with a look at what the options name: for whoever saves a target, or polls but once."""
        options = self.options(name, raw)
        collector = self.get(name)
        if isinstance(collector, ChecksOptions):
            try:
                collector.check_options(options)
            except errors.ConfigError as error:
                raise errors.InvalidInput(
                    f"collector {name}: {error.message}", error.cause, error.hint
                ) from None
            except BaseException as error:
                raise _unchecked(name, error) from error
        return options


def load(
    points: Iterable[EntryPoint] | None = None, served: Mapping[int, Served] = SERVED
) -> Registry:
    """Import every collector of the entry-point group, built-ins and plugins alike."""
    kinds = dict(BUILT_IN)

    def admitted(collector: Any, name: str) -> Admitted:
        made = admit(collector, name, served, kinds)
        kinds.update({model.kind: model for model in made.collector.credentials})
        return made

    installed, unreadable = plugins.points(GROUP) if points is None else (points, [])
    found = plugins.load(installed, _make, admitted, unreadable)
    each = found.plugins.items()
    return Registry(
        {name: admitted.collector for name, admitted in each},
        found.broken,
        found.distributions,
        {name: admitted.api_version for name, admitted in each},
        {name: admitted.stated for name, admitted in each},
        {name: admitted.notice for name, admitted in each if admitted.notice},
    )


def _make(thing: Any) -> Any:
    return thing()


def admit(
    collector: Any,
    name: str,
    served: Mapping[int, Served] = SERVED,
    kinds: Mapping[str, type[Credential]] = BUILT_IN,
) -> Admitted:
    """Does it keep the contract, as far as one can see without a device? Raises ConfigError, saying what is wrong.

    `kinds` are the kinds of credentials that are taken, and by which models.
    """
    _check_complete(collector, served)
    if collector.name != name:
        raise errors.ConfigError(f'it calls itself "{collector.name}"')
    if odd := naming.why_not_a_word(name):  # it is part of the name of a queue
        raise errors.ConfigError(f"its name {odd}")
    stated = api_version.span(collector.api_version)
    version = api_version.choose(stated, served, "collector")
    collector = served[version].adapt(collector)
    if not isinstance(collector, Collector):
        raise errors.ConfigError("it does not implement poller.collectors.api.Collector")
    if not (isinstance(collector.Options, type) and issubclass(collector.Options, Options)):
        raise errors.ConfigError(
            "its Options is not a class made from poller.collectors.api.Options"
        )
    _check_static(collector)
    _check_options(collector)
    _check_abilities(collector)
    _check_cost(collector)
    _check_credentials(collector, kinds)
    _check_schedule(collector)
    return Admitted(collector, version, stated, api_version.notice(version, served, "collector"))


def _check_complete(collector: Any, served: Mapping[int, Served]) -> None:
    """What the contract of its version asks for is there; of an older version only what tells which that is."""
    current = getattr(collector, "api_version", None) in (None, max(served))
    wanted = _MUST_HAVE if current else _MUST_HAVE[:2]
    if lacks := [attribute for attribute in wanted if not hasattr(collector, attribute)]:
        hint = "its author finds the contract in docs/plugins.md"
        raise errors.ConfigError(f"it lacks {', '.join(lacks)}", hint=hint)


def _check_static(collector: Collector) -> None:
    """What is computed each time could raise one day, in the middle of everybody's heartbeat."""
    for name in _ASKED_OFTEN:
        found = inspect.getattr_static(collector, name, None)
        computed = hasattr(type(found), "__get__") and not callable(found)
        if computed and not isinstance(found, classmethod | MemberDescriptorType):
            hint = f"its author writes {name} = ... in the class, or sets it when it is made"
            raise errors.ConfigError(f"its {name} is a property", hint=hint)


def _check_options(collector: Collector) -> None:
    """Every list of collectors shows them: one whose options cannot be shown must not take the others along."""
    model = collector.Options
    try:
        for field in model.model_fields.values():
            if not field.is_required():
                to_jsonable_python(field.get_default(call_default_factory=True, validated_data={}))
        model.model_json_schema()
    except Exception as error:  # noqa: BLE001  whatever a plugin raises
        hint = "its author gives it types and defaults that JSON can say"
        raise errors.ConfigError("its Options cannot be shown", plugins.text(error), hint) from None


def _check_abilities(collector: Collector) -> None:
    """A generator that blocks on the loop, or one that cannot run in a thread, would fail at its first poll."""
    for ability in ("blocking", "isolated"):
        if not isinstance(getattr(collector, ability, False), bool):
            raise errors.ConfigError(f"its {ability} is neither True nor False")
    blocks = getattr(collector, "blocking", False)
    if inspect.isgeneratorfunction(collector.collect) and not blocks:
        hint = "its author adds blocking = True to run it in threads, or writes async def"
        raise errors.ConfigError("its collect is a plain generator", hint=hint)
    if inspect.iscoroutinefunction(collector.collect):
        raise errors.ConfigError(
            "its collect yields nothing", hint="its author writes yield where it says return"
        )
    if inspect.isasyncgenfunction(collector.collect) and blocks:
        hint = "its author removes blocking = True, or writes def instead of async def"
        raise errors.ConfigError(
            "it says blocking, and its collect is an async generator", hint=hint
        )
    if blocks and isinstance(collector, KeepsSessions):
        hint = "its author keeps connections in poll.memory or in the instance, or writes async def"
        raise errors.ConfigError(
            "it says blocking, and keeps sessions: a thread cannot wait for one", hint=hint
        )


def _check_cost(collector: Collector) -> None:
    """It divides the size of a batch."""
    if not isinstance(collector, Costs):
        return
    cost: Any = collector.cost
    if (
        not isinstance(cost, int | float)
        or isinstance(cost, bool)
        or not isfinite(cost)
        or cost < 1
    ):
        raise errors.ConfigError(
            f"its cost is {cost!r:.40}", hint="its author writes a number from 1 (an ordinary poll)"
        )


def _check_credentials(collector: Collector, kinds: Mapping[str, type[Credential]]) -> None:
    """Every poll asks whether its credential is one of these, and must not fail over the question.

    A kind says which model a stored credential is read by: with two of them, one would read what the other wrote.
    """
    models = collector.credentials
    if not isinstance(models, tuple) or not all(
        isinstance(m, type) and issubclass(m, Credential) for m in models
    ):
        raise errors.ConfigError("its credentials are not a tuple of credential models")
    taken = dict(kinds)
    for model in models:
        kind = getattr(model, "kind", None)
        hint = f'its author writes kind = "..." in {model.__name__}, a word that is its own'
        if odd := "is missing" if kind is None else naming.why_not_a_word(kind):
            raise errors.ConfigError(
                f"the kind of its credential model {model.__name__} {odd}", hint=hint
            )
        if taken.setdefault(str(kind), model) is not model:
            text = f'its credential model {model.__name__} has the kind "{kind}", which another model has'
            raise errors.ConfigError(text, hint=hint)


def _check_schedule(collector: Collector) -> None:
    """A default that could never be stored is the plugin's mistake, not that of whoever adds a target."""
    if not isinstance(collector, Scheduled):
        return
    if not isinstance(collector.schedule, Schedule):
        raise errors.ConfigError("its schedule is not a poller.collectors.api.Schedule")
    settled = schedule.settle(collector.schedule, None, schedule.NO_DEFAULTS)
    for problem in schedule.problems(collector.schedule, settled):
        raise errors.ConfigError(f"its schedule: {problem.message}", hint=problem.hint)


def _unchecked(name: str, error: BaseException) -> errors.InvalidInput:
    return errors.InvalidInput(
        f"collector {name}: its options cannot be checked", plugins.text(error)
    )


def _explain(name: str, model: type[Options], error: pydantic.ValidationError) -> str:
    parts = []
    for item in error.errors(include_url=False, include_context=False):
        field_name = ".".join(str(part) for part in item["loc"])  # none: it is about several
        if item["type"] == "extra_forbidden":
            near = difflib.get_close_matches(field_name, model.model_fields, n=1)
            known = (
                f"did you mean {near[0]}?" if near else "it takes " + ", ".join(model.model_fields)
            )
            parts.append(f'unknown option "{field_name}"; {known}')
        else:
            said = item["msg"].removeprefix("Value error, ")
            if wanted := _WANTED.get(item["type"]):
                said = f"{item['input']!r:.40} is not {wanted}"
            parts.append(f'option "{field_name}": {said}' if field_name else said)
    return f"collector {name}: " + "; ".join(parts)
