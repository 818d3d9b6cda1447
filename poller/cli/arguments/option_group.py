"""Options that several commands share: fields of a dataclass, expanded for Typer."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from inspect import Parameter
from typing import Any, get_type_hints

Command = Callable[..., None]


def expand_options(command: Command) -> Command:
    """Replace each parameter whose type is a dataclass by one parameter per field.

    Typer then sees the fields as options of the command; the command receives the dataclass.
    """
    signature = inspect.signature(command)
    hints = get_type_hints(command, include_extras=True)

    groups: dict[str, Any] = {}
    parameters: list[Parameter] = []
    for name, parameter in signature.parameters.items():
        hint = hints[name]
        if dataclasses.is_dataclass(hint):
            groups[name] = hint
            parameters += _field_parameters(hint)
        else:
            keyword = parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=hint)
            parameters.append(keyword)

    @functools.wraps(command)
    def expanded(**values: Any) -> None:
        for name, group in groups.items():
            fields = dataclasses.fields(group)
            values[name] = group(**{field.name: values.pop(field.name) for field in fields})
        command(**values)

    typed: Any = expanded
    typed.__signature__ = signature.replace(parameters=parameters)
    typed.__annotations__ = {each.name: each.annotation for each in parameters}

    return expanded


def _field_parameters(group: Any) -> list[Parameter]:
    hints = get_type_hints(group, include_extras=True)

    parameters = []
    for field in dataclasses.fields(group):
        parameter = Parameter(
            field.name,
            Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=hints[field.name],
        )
        parameters.append(parameter)

    return parameters
