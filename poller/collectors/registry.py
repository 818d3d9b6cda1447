"""Which collectors are installed? Entry points, loaded once per process; a broken one never harms the others."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import pydantic

from poller import errors
from poller.collectors.api import API_VERSION, Collector, Options

GROUP = "poller.collectors"


@dataclass(frozen=True)
class Broken:
    """A collector that is installed but cannot be used, and why."""

    name: str
    distribution: str
    reason: str
    hint: str = ""


@dataclass(frozen=True)
class Registry:
    collectors: Mapping[str, Collector] = field(default_factory=dict)
    broken: tuple[Broken, ...] = ()
    distributions: Mapping[str, str] = field(default_factory=dict)

    def get(self, name: str) -> Collector:
        """The collector of that name; the error names the nearest one, or why it is broken."""
        if name in self.collectors:
            return self.collectors[name]
        for broken in self.broken:
            if broken.name == name:
                text = f'collector "{name}" ({broken.distribution}) cannot be used'
                raise errors.InvalidInput(text, cause=broken.reason, hint=broken.hint)
        near = difflib.get_close_matches(name, self.collectors, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise errors.InvalidInput(
            f'unknown collector "{name}"', hint=hint + "installed: " + ", ".join(sorted(self.collectors))
        )

    def options(self, name: str, raw: Mapping[str, Any]) -> Options:
        """Validated options; the error names the field, what was wrong and what it takes."""
        model = self.get(name).Options
        try:
            return model.model_validate(dict(raw))
        except pydantic.ValidationError as error:
            raise errors.InvalidInput(_explain(name, model, error)) from None


def load(points: Iterable[EntryPoint] | None = None) -> Registry:
    """Import every collector of the entry-point group, built-ins and plugins alike."""
    collectors: dict[str, Collector] = {}
    distributions: dict[str, str] = {}
    broken: list[Broken] = []
    for point in sorted(points if points is not None else entry_points(group=GROUP), key=_order):
        origin = f"{point.dist.name} {point.dist.version}" if point.dist else "unknown distribution"
        try:
            collector = _instance(point)
        except errors.PollerError as error:
            broken.append(Broken(point.name, origin, str(error), error.hint))
            continue
        except (Exception, SystemExit) as error:  # noqa: BLE001  a plugin may raise anything at import
            broken.append(Broken(point.name, origin, f"{type(error).__name__}: {error}"))
            continue
        if point.name in collectors:
            broken.append(Broken(point.name, origin, f"the name is taken by {distributions[point.name]}"))
            continue
        collectors[point.name] = collector
        distributions[point.name] = origin
    return Registry(collectors, tuple(broken), distributions)


def _order(point: EntryPoint) -> tuple[bool, str, str]:
    """Ours first, so that a plugin cannot take a built-in's name by accident of order."""
    distribution = point.dist.name if point.dist else ""
    return (distribution != "poller", point.name, distribution)


def _instance(point: EntryPoint) -> Collector:
    collector = point.load()()
    if collector.name != point.name:
        raise errors.ConfigError(f'it calls itself "{collector.name}"')
    if collector.api_version != API_VERSION:
        raise errors.ConfigError(f"it needs collector API {collector.api_version}, this is {API_VERSION}")
    if not isinstance(collector, Collector):
        raise errors.ConfigError("it does not implement poller.collectors.api.Collector")
    return collector


def _explain(name: str, model: type[Options], error: pydantic.ValidationError) -> str:
    parts = []
    for item in error.errors(include_url=False, include_context=False):
        field_name = ".".join(str(part) for part in item["loc"]) or "options"
        if item["type"] == "extra_forbidden":
            near = difflib.get_close_matches(field_name, model.model_fields, n=1)
            known = f"did you mean {near[0]}?" if near else "it takes " + ", ".join(model.model_fields)
            parts.append(f'unknown option "{field_name}"; {known}')
        else:
            parts.append(f'option "{field_name}": {item["msg"].removeprefix("Value error, ")}')
    return f"collector {name}: " + "; ".join(parts)
