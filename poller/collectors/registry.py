"""Loads the installed collectors from entry points, once per process.

A collector that breaks the contract is named with its fault and affects no other collector.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint
from typing import Any

import pydantic
from pydantic_core import ErrorDetails

from poller import errors, plugins
from poller.collectors.admission import Admitted, admit
from poller.collectors.api import (
    SERVED,
    ChecksOptions,
    Collector,
    Costs,
    KeepsSessions,
    Options,
    Scheduled,
)
from poller.collectors.credentials import BUILT_IN
from poller.domain.inventory.api_version import Served
from poller.domain.scheduling.schedule import Schedule
from poller.plugins import Broken

GROUP = "poller.collectors"
#: Error types of pydantic, and the kind of value the option takes.
_EXPECTED = {
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_parsing": "a number",
    "float_type": "a number",
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "string_type": "a text",
}


@dataclass(frozen=True)
class Registry:
    """The collectors of a process by name, and the installed ones that cannot be used."""

    collectors: Mapping[str, Collector] = field(default_factory=dict)
    broken: tuple[Broken, ...] = ()
    #: Collector to distribution, as `name version`.
    distributions: Mapping[str, str] = field(default_factory=dict)
    #: Collector to the contract version in use.
    api_versions: Mapping[str, int] = field(default_factory=dict)
    #: Collector to the first and the last contract version it works with.
    stated: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    #: Collector to a sentence that names the end of its contract version, if one is planned.
    deprecated: Mapping[str, str] = field(default_factory=dict)

    def get(self, name: str) -> Collector:
        """Return a collector. Raises CollectorMissing with the nearest name, or with the fault."""
        if name in self.collectors:
            return self.collectors[name]
        for broken in self.broken:
            if broken.name == name:
                text = f'collector "{name}" ({broken.distribution}) cannot be used'
                raise errors.CollectorMissing(text, broken.reason, broken.hint, field="collector")

        installed = "installed: " + ", ".join(sorted(self.collectors))
        nearest = difflib.get_close_matches(name, self.collectors, n=1)
        hint = f"did you mean {nearest[0]}? poller collectors" if nearest else "poller collectors"
        text = f'unknown collector "{name}"'
        raise errors.CollectorMissing(text, installed, hint, field="collector")

    def schedule(self, name: str) -> Schedule:
        """Return the default schedule a collector declares; an empty one if it declares none."""
        collector = self.collectors.get(name)
        return collector.schedule if isinstance(collector, Scheduled) else Schedule()

    @property
    def keeping_sessions(self) -> tuple[str, ...]:
        """Names of the collectors that keep sessions."""
        items = self.collectors.items()
        return tuple(name for name, collector in items if isinstance(collector, KeepsSessions))

    @property
    def costs(self) -> dict[str, float]:
        """Cost of a poll, for each collector that declares one."""
        costs = {}
        for name, collector in self.collectors.items():
            if isinstance(collector, Costs):
                costs[name] = float(collector.cost)
        return costs

    def options(self, name: str, raw: Mapping[str, Any]) -> Options:
        """Validate options. Raises InvalidInput that names the option and the values it takes."""
        model = self.get(name).Options
        try:
            return model.model_validate(dict(raw))
        except pydantic.ValidationError as error:
            raise errors.InvalidInput(_validation_text(name, model, error)) from None
        except BaseException as error:  # door: a plugin's validator may raise SystemExit
            raise _uncheckable(name, error) from error

    def checked_options(self, name: str, raw: Mapping[str, Any]) -> Options:
        """Validate options, and let the collector check what they name (`ChecksOptions`)."""
        options = self.options(name, raw)
        collector = self.get(name)
        if isinstance(collector, ChecksOptions):
            try:
                collector.check_options(options)
            except errors.ConfigError as error:
                text = f"collector {name}: {error.message}"
                raise errors.InvalidInput(text, error.cause, error.hint) from None
            except BaseException as error:  # door: a plugin may raise anything
                raise _uncheckable(name, error) from error
        return options


def load(
    points: Iterable[EntryPoint] | None = None, served: Mapping[int, Served] = SERVED
) -> Registry:
    """Import every collector of the entry-point group, built-ins and plugins alike."""
    kinds = dict(BUILT_IN)

    def admit_next(collector: Any, name: str) -> Admitted:
        admitted = admit(collector, name, served, kinds)
        kinds.update({model.kind: model for model in admitted.collector.credentials})
        return admitted

    loaded = plugins.load(GROUP, admit_next, points, make=_instantiate)
    admitted = loaded.plugins.items()
    return Registry(
        collectors={name: each.collector for name, each in admitted},
        broken=loaded.broken,
        distributions=loaded.distributions,
        api_versions={name: each.api_version for name, each in admitted},
        stated={name: each.stated for name, each in admitted},
        deprecated={name: each.notice for name, each in admitted if each.notice},
    )


def _instantiate(collector_class: Any) -> Any:
    return collector_class()


def _uncheckable(name: str, error: BaseException) -> errors.InvalidInput:
    text = f"collector {name}: its options cannot be checked"
    return errors.InvalidInput(text, plugins.error_text(error))


def _validation_text(name: str, model: type[Options], error: pydantic.ValidationError) -> str:
    details = error.errors(include_url=False, include_context=False)
    parts = [_detail_text(model, detail) for detail in details]
    return f"collector {name}: " + "; ".join(parts)


def _detail_text(model: type[Options], detail: ErrorDetails) -> str:
    option = ".".join(str(part) for part in detail["loc"])  # "" if it concerns several options
    if detail["type"] == "extra_forbidden":
        nearest = difflib.get_close_matches(option, model.model_fields, n=1)
        advice = "it takes " + ", ".join(model.model_fields)
        if nearest:
            advice = f"did you mean {nearest[0]}?"
        return f'unknown option "{option}"; {advice}'

    text = detail["msg"].removeprefix("Value error, ")
    expected = _EXPECTED.get(detail["type"])
    if expected:
        text = f"{detail['input']!r:.40} is not {expected}"
    return f'option "{option}": {text}' if option else text
