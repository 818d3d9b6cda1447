"""Translates pydantic's exceptions into ours. A message names the setting, never its value."""

from __future__ import annotations

import os
from typing import Any, Literal, get_args, get_origin

import pydantic
import pydantic_core
import pydantic_settings
from pydantic.fields import FieldInfo

from poller import errors
from poller.settings import setting_sources
from poller.settings.fields import Settings

#: Every exception of pydantic and its relatives: values are the operator's, models are ours.
TRANSLATION: dict[type[Exception], type[errors.PollerError]] = {
    pydantic.ValidationError: errors.InvalidSetting,
    pydantic_settings.SettingsError: errors.InvalidSetting,
    pydantic.PydanticUserError: errors.Bug,
    pydantic.errors.PydanticForbiddenQualifier: errors.Bug,
    pydantic.PydanticImportError: errors.Bug,
    pydantic.PydanticInvalidForJsonSchema: errors.Bug,
    pydantic.PydanticSchemaGenerationError: errors.Bug,
    pydantic.PydanticUndefinedAnnotation: errors.Bug,
    # A validator may raise the next four; pydantic turns them into a ValidationError.
    pydantic_core.PydanticCustomError: errors.Bug,
    pydantic_core.PydanticKnownError: errors.Bug,
    pydantic_core.PydanticOmit: errors.Bug,
    pydantic_core.PydanticUseDefault: errors.Bug,
    pydantic_core.PydanticSerializationError: errors.Bug,
    pydantic_core.PydanticSerializationUnexpectedValue: errors.Bug,
    pydantic_core.SchemaError: errors.Bug,
}

_LIST_HINT = "`poller settings` lists what each one takes"
_TYPE_NAMES: dict[type, str] = {bool: "true or false", int: "a whole number", float: "a number"}
_BOUND_NAMES = {"gt": "above", "ge": "from", "le": "to"}


def translated(error: Exception) -> errors.PollerError:
    """The error of ours for one of TRANSLATION."""
    kind = next(TRANSLATION[base] for base in type(error).__mro__ if base in TRANSLATION)
    if isinstance(error, pydantic.ValidationError):
        return _invalid_value(kind, error)
    if kind is errors.InvalidSetting:
        return kind(str(error), hint=_LIST_HINT)
    return kind("the settings cannot be read", type(error).__name__, "this is a bug in poller")


def _invalid_value(
    kind: type[errors.PollerError], error: pydantic.ValidationError
) -> errors.PollerError:
    """The error of the first bad value."""
    details = error.errors(include_url=False, include_input=False, include_context=False)
    first = details[0]
    setting = str(first["loc"][0]) if first["loc"] else "settings"
    problem = first["msg"].removeprefix("Value error, ")

    origins = setting_sources.origins_of(os.environ, Settings.model_fields)
    origin = origins.get(setting, "default")
    return kind(f"{setting} (from {origin}): {problem}", hint=_hint(setting))


def _hint(setting: str) -> str:
    """The values a setting takes, and its description."""
    field = Settings.model_fields.get(setting)
    if field is None:
        return _LIST_HINT
    values = _accepted_values(field)
    if not values:
        return f"{setting}: {field.description}"
    return f"{setting} takes {values}. {field.description}"


def _accepted_values(field: FieldInfo) -> str:
    """Type, bounds and an example in words; "" for a type that only the description explains."""
    if get_origin(field.annotation) is Literal:
        return " or ".join(get_args(field.annotation))

    types = set(get_args(field.annotation)) or {field.annotation}
    type_name = next((name for kind, name in _TYPE_NAMES.items() if kind in types), "")
    if not type_name:
        return ""

    words = [type_name, *_bounds(field)]
    has_example = field.default is not None and bool not in types
    example = f", such as {field.default}" if has_example else ""
    return " ".join(words) + example


def _bounds(field: FieldInfo) -> list[str]:
    """The bounds of a number in words, such as "from 1" and "to 60"."""
    bounds = []
    for constraint in field.metadata:
        for attribute, name in _BOUND_NAMES.items():
            limit: Any = getattr(constraint, attribute, None)
            if limit is not None:
                bounds.append(f"{name} {limit:.10g}")
    return bounds
