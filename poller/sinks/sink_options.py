"""The table of a sink in the settings: its kind, and its options checked by the sink's model."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

import pydantic
from pydantic_core import ErrorDetails

from poller import errors, plugins

#: Tables by the name of the sink, as in poller.toml.
Tables = Mapping[str, Mapping[str, Any]]

KIND = "kind"

#: The words for errors of pydantic that people meet.
_TEXTS = {
    "missing": "it must be set",
    "dict_type": 'it is a table: {name = "text"}',
    "tuple_type": 'it is a list: ["text"]',
    "list_type": 'it is a list: ["text"]',
    "string_type": "it is a text in quotes",
}


def kind_of(name: str, tables: Tables) -> str:
    """The entry point of a sink: `kind` of its table, else its own name."""
    return str(tables.get(name, {}).get(KIND, name))


def written_options(name: str, tables: Tables) -> dict[str, Any]:
    """The options of a sink as its table has them, unchecked."""
    return {key: value for key, value in tables.get(name, {}).items() if key != KIND}


def checked(name: str, sink: Any, options: Mapping[str, Any]) -> pydantic.BaseModel | None:
    """Validate the options of a sink; None for a sink that takes none.

    Raises InvalidSetting that names the table, the option and what the option takes.
    """
    model = model_of(sink)
    if model is None:
        if options:
            raise _takes_none(name, options)
        return None
    try:
        return model.model_validate(dict(options))
    except pydantic.ValidationError as error:
        raise _invalid(name, model, error) from None
    except BaseException as error:  # door: a plugin's validator may raise SystemExit
        text = f"[sink.{name}]: its options cannot be checked"
        raise errors.InvalidSetting(text, plugins.error_text(error)) from error


def model_of(sink: Any) -> type[pydantic.BaseModel] | None:
    """The options model of a sink's class, if the class has one."""
    model: type[pydantic.BaseModel] | None = getattr(sink, "Options", None)
    return model


def _takes_none(name: str, options: Mapping[str, Any]) -> errors.InvalidSetting:
    first = next(iter(options))
    return errors.InvalidSetting(
        f"[sink.{name}] {first}: a sink of this kind takes no options",
        hint=f"remove {first}, or set kind to the sink that takes it (`poller sinks` lists them)",
    )


def _invalid(
    name: str, model: type[pydantic.BaseModel], error: pydantic.ValidationError
) -> errors.InvalidSetting:
    """The error of all bad options; the hint is that of the first. No value is repeated."""
    details = error.errors(include_url=False, include_input=False, include_context=False)
    details = [detail for detail in details if not _is_about_a_part(detail, details)]
    texts = "; ".join(_detail_text(model, detail) for detail in details)
    return errors.InvalidSetting(f"[sink.{name}] {texts}", hint=_hint(model, details[0]))


def _is_about_a_part(detail: ErrorDetails, details: list[ErrorDetails]) -> bool:
    """Whether another error says what is wrong in this one's value: a list is empty without it."""
    place = detail["loc"]
    return any(place == each["loc"][: len(place)] != each["loc"] for each in details if place)


def _detail_text(model: type[pydantic.BaseModel], detail: ErrorDetails) -> str:
    option = ".".join(str(part) for part in detail["loc"])  # "" if it concerns several options
    if detail["type"] == "extra_forbidden":
        near = _near(option, model)
        return f"{option}: there is no such option" + (f" (did you mean {near}?)" if near else "")
    if detail["type"] in _TEXTS:
        return f"{option}: {_TEXTS[detail['type']]}"
    text = detail["msg"].removeprefix("Value error, ")
    return f"{option}: {text}" if option else text


def _hint(model: type[pydantic.BaseModel], detail: ErrorDetails) -> str:
    option = str(detail["loc"][0]) if detail["loc"] else ""
    if detail["type"] == "extra_forbidden":
        near = _near(option, model)
        return f"did you mean {near}?" if near else "options: " + ", ".join(model.model_fields)
    field = model.model_fields.get(option)
    return f"{option}: {field.description}" if field and field.description else ""


def _near(option: str, model: type[pydantic.BaseModel]) -> str:
    return next(iter(difflib.get_close_matches(option, model.model_fields, n=1)), "")
