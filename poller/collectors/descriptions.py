"""Describes an installed collector for people and programs: origin, abilities, options."""

from __future__ import annotations

import enum
import types
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from poller.collectors import api
from poller.collectors.api import Collector
from poller.collectors.registry import Registry

#: The abilities a collector may have, in the words of the documentation.
ABILITIES: dict[str, Callable[[Any], bool]] = {
    "sessions": lambda collector: isinstance(collector, api.KeepsSessions),
    "discovery": lambda collector: isinstance(collector, api.Discovers),
    "blocking": lambda collector: bool(getattr(collector, "blocking", False)),
    "isolated": lambda collector: bool(getattr(collector, "isolated", False)),
    "cost": lambda collector: isinstance(collector, api.Costs),
    "schedule": lambda collector: isinstance(collector, api.Scheduled),
    "help": lambda collector: isinstance(collector, api.Documented),
}

LISTS = (list, tuple, set, frozenset)
_TYPE_NAMES = {
    int: "integer",
    float: "number",
    str: "text",
    bool: "true|false",
    type(None): "nothing",
}
_BOUND_WORDS = {"ge": "", "gt": "above ", "le": "to ", "lt": "below "}


def describe(collector: Collector, registry: Registry) -> dict[str, Any]:
    """Return name, origin, contract versions, abilities, credential kinds and options."""
    name = collector.name
    distribution, _, version = registry.distributions[name].rpartition(" ")
    return {
        "name": name,
        "distribution": distribution,
        "version": version,
        "api_version": registry.api_versions[name],
        "api_versions": list(registry.stated[name]),
        "deprecated": registry.deprecated.get(name, ""),
        "abilities": abilities(collector),
        "cost": registry.costs.get(name, 1.0),
        "credentials": [model.kind for model in collector.credentials],
        "options": list(options(collector)),
    }


def abilities(collector: Collector) -> list[str]:
    return [name for name, has_ability in ABILITIES.items() if has_ability(collector)]


def schema(collector: Collector) -> dict[str, Any]:
    """Return the JSON schema of the collector's options."""
    return collector.Options.model_json_schema()


def options(collector: Collector) -> Iterator[dict[str, Any]]:
    for name, field in collector.Options.model_fields.items():
        yield {
            "name": name,
            "type": _type_text(field.annotation) + _bounds_text(field.metadata),
            "default": _default(field),
            "required": field.is_required(),
            "description": field.description or "",
        }


def _default(field: FieldInfo) -> Any:
    if field.is_required():
        return None
    return field.get_default(call_default_factory=True, validated_data={})


def _type_text(annotation: Any) -> str:
    """Write a type for operators: `tuple[str, ...]` is `list of text`, `int | None` `integer`."""
    origin = get_origin(annotation)
    parts = get_args(annotation)
    if origin is Literal:
        return "|".join(map(str, parts))
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return "|".join(str(each.value) for each in annotation)
    if origin in (Union, types.UnionType):
        return " or ".join(_type_text(part) for part in parts if part is not type(None))
    if origin is Annotated:
        return _type_text(parts[0])
    if origin in LISTS:
        return f"list of {_type_text(parts[0])}"
    if origin is dict:
        return f"{_type_text(parts[1])} by name"
    if annotation in _TYPE_NAMES:
        return _TYPE_NAMES[annotation]
    return str(getattr(origin or annotation, "__name__", annotation))


def _bounds_text(metadata: list[Any]) -> str:
    """Write the bounds of a number: ` 1 to 65535`, ` above 0 to 60`; "" without bounds."""
    bounds = {}
    for rule in metadata:
        for key in _BOUND_WORDS:
            bound = getattr(rule, key, None)
            if bound is not None:
                bounds[key] = bound
    words = (f" {word}{bounds[key]}" for key, word in _BOUND_WORDS.items() if key in bounds)
    return "".join(words)
