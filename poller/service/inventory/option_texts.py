"""Texts of options to values of the types that a collector declares for them."""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel

from poller import errors

_SEQUENCES = frozenset((list, tuple, set, frozenset))


def typed(model: type[BaseModel], texts: Mapping[str, str]) -> dict[str, Any]:
    """Convert texts for list and mapping fields; the model converts the other texts."""
    return {key: _typed(model, key, text) for key, text in texts.items()}


def _typed(model: type[BaseModel], key: str, text: str) -> Any:
    """The value of one option: a structure, a list of words, or the text itself."""
    field = model.model_fields.get(key)
    kinds = _kinds(field.annotation) if field else set()
    takes_sequence = bool(kinds & _SEQUENCES)
    takes_structure = takes_sequence or dict in kinds

    if takes_structure and text[:1] in ("[", "{"):
        return structure(key, text)
    if takes_sequence and str not in kinds:
        parts = (part.strip() for part in text.split(","))
        return [part for part in parts if part]

    return text


def structure(key: str, text: str) -> Any:
    """A list or mapping written as YAML, which includes JSON: `[system, if_mib]`."""
    import yaml

    from poller.collectors.snmp.modules import yaml_text

    try:
        yaml_text.read(text, f'option "{key}"')  # refuses what would take all memory
        return yaml.safe_load(text)
    except (yaml.YAMLError, errors.ConfigError):
        raise errors.InvalidInput(
            f'option "{key}": "{text}" is not a YAML value', hint="put it in quotes"
        ) from None


def _kinds(annotation: Any) -> set[Any]:
    """The types an annotation allows, one level deep: `list[str] | None` -> {list, NoneType}."""
    origin = get_origin(annotation)
    if origin in (Union, types.UnionType):
        parts = get_args(annotation)
        return set().union(*(_kinds(part) for part in parts))
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return {dict}

    return {origin or annotation}
