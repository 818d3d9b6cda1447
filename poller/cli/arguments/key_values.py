"""Command-line words to values: `key=value` pairs, and option texts in the type the collector declares."""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel

from poller import errors

_SEQUENCES = (list, tuple, set, frozenset)


def pairs(words: Iterable[str]) -> dict[str, str]:
    """`-o key=value` words; a key given twice is an error, not a guess."""
    found: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise errors.InvalidInput(
                f'"{word}" is not of the form key=value', hint="for example -o port=161"
            )
        if key in found:
            raise errors.InvalidInput(f'option "{key}" is given twice')
        found[key] = value
    return found


def typed(model: type[BaseModel], texts: Mapping[str, str]) -> dict[str, Any]:
    """Texts for the fields that take lists or structures are taken apart; the model does the rest."""
    return {key: _typed(model, key, text) for key, text in texts.items()}


def _typed(model: type[BaseModel], key: str, text: str) -> Any:
    field = model.model_fields.get(key)
    kinds = _kinds(field.annotation) if field else set()
    if kinds & {dict, *_SEQUENCES} and text[:1] in ("[", "{"):
        return structure(key, text)
    if kinds & set(_SEQUENCES) and str not in kinds:
        return [part.strip() for part in text.split(",") if part.strip()]
    return text


def structure(key: str, text: str) -> Any:
    """A list or mapping as YAML, which JSON is too: `[system, if_mib]`."""
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        raise errors.InvalidInput(
            f'option "{key}": "{text}" is not a YAML value', hint="put it in quotes"
        ) from None


def _kinds(annotation: Any) -> set[Any]:
    """The types an annotation allows, one level deep: `list[str] | None` -> {list, NoneType}."""
    origin = get_origin(annotation)
    if origin in (Union, types.UnionType):
        return set().union(*(_kinds(part) for part in get_args(annotation)))
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return {dict}
    return {origin or annotation}
