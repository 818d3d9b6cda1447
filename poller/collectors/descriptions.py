"""A collector as people and programs are told of it: where it comes from, what it can, which options it takes."""

from __future__ import annotations

import enum
import types
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal, Union, get_args, get_origin

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

_WORDS = {int: "integer", float: "number", str: "text", bool: "true|false", type(None): "nothing"}
LISTS = (list, tuple, set, frozenset)
_BOUNDS = {"ge": "", "gt": "above ", "le": "to ", "lt": "below "}


def item(collector: Collector, found: Registry) -> dict[str, Any]:
    """Name, origin, versions of the contract, abilities, credentials and options."""
    distribution, _, version = found.distributions[collector.name].rpartition(" ")
    return {
        "name": collector.name,
        "distribution": distribution,
        "version": version,
        "api_version": found.api_versions[collector.name],
        "api_versions": list(found.stated[collector.name]),
        "deprecated": found.deprecated.get(collector.name, ""),
        "abilities": abilities(collector),
        "cost": found.costs.get(collector.name, 1.0),
        "credentials": [model.kind for model in collector.credentials],
        "options": list(options(collector)),
    }


def abilities(collector: Collector) -> list[str]:
    return [name for name, has in ABILITIES.items() if has(collector)]


def schema(collector: Collector) -> dict[str, Any]:
    """The JSON schema of its options."""
    return collector.Options.model_json_schema()


def options(collector: Collector) -> Iterator[dict[str, Any]]:
    for name, field in collector.Options.model_fields.items():
        required = field.is_required()
        yield {
            "name": name,
            "type": _type(field.annotation) + _bounds(field.metadata),
            "default": None
            if required
            else field.get_default(call_default_factory=True, validated_data={}),
            "required": required,
            "description": field.description or "",
        }


def _type(annotation: Any) -> str:
    """An annotation as an operator reads it: `tuple[str, ...]` -> `list of text`, `int | None` -> `integer`."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return "|".join(map(str, parts))
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return "|".join(str(each.value) for each in annotation)
    if origin in (Union, types.UnionType):
        return " or ".join(_type(part) for part in parts if part is not type(None))
    if origin is Annotated:
        return _type(parts[0])
    if origin in LISTS:
        return f"list of {_type(parts[0])}"
    if origin is dict:
        return f"{_type(parts[1])} by name"
    return _WORDS.get(annotation) or str(getattr(origin or annotation, "__name__", annotation))


def _bounds(metadata: list[Any]) -> str:
    """` 1 to 65535`, ` above 0 to 60`; nothing for what has no bounds."""
    given = {
        key: getattr(rule, key)
        for rule in metadata
        for key in _BOUNDS
        if getattr(rule, key, None) is not None
    }
    return "".join(f" {word}{given[key]}" for key, word in _BOUNDS.items() if key in given)
