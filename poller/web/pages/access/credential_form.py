"""The form of a credential: the fields of its kind. Secrets are typed, and never come back."""

from __future__ import annotations

import json
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import SecretStr

from poller import errors
from poller.collectors.credentials import Credential
from poller.web.pages.device.target_form import FormField

NAME = "name"
KIND = "kind"
#: Stands before the name of a field of the kind, so that a kind may have any names.
PREFIX = "field."
#: The mark of a form that replaces all fields; without it an empty field stays as it is.
REPLACE = "replace"
#: The hidden field with the version that was edited.
VERSION = "version"
_UNCHANGED = "(as before)"


@dataclass(frozen=True, slots=True)
class CredentialForm:
    """The inputs of one kind, and what was wrong with the last try."""

    kind: str
    fields: Sequence[FormField]
    error: str = ""
    hint: str = ""


def build(
    model: type[Credential], *, has_name: bool = False, keeps: bool = False
) -> CredentialForm:
    """Return the empty form of a kind. If it keeps stored fields, every field may stay empty."""
    fields = [_field(model, name, keeps=keeps) for name in model.model_fields]
    if has_name:
        name = FormField(NAME, "Name", "", "such as core-snmp; devices name it", is_required=True)
        fields.insert(0, name)
    return CredentialForm(model.kind, fields)


def values(model: type[Credential], sent: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields that were filled in; texts as JSON where a field is no plain value."""
    found: dict[str, Any] = {}
    for name, info in model.model_fields.items():
        text = sent.get(f"{PREFIX}{name}", "")
        if text:
            found[name] = text if _is_plain(info.annotation) else _parsed(text)
    return found


def refused(
    form: CredentialForm, sent: Mapping[str, str], error: errors.PollerError
) -> CredentialForm:
    """Return the form with what was typed but secrets, and the error beside its field."""
    message = str(error)

    def kept(each: FormField) -> FormField:
        text = "" if each.is_secret else sent.get(each.name, each.text)
        is_wrong = _is_about(each.name, error)
        return replace(each, text=text, error=message if is_wrong else "")

    fields = [kept(each) for each in form.fields]
    return replace(form, fields=fields, error=message, hint=error.hint)


def _is_about(name: str, error: errors.PollerError) -> bool:
    if name == NAME:
        is_taken = isinstance(error, errors.AlreadyExists)
        return is_taken or error.message.startswith("the credential name")
    return f" credential: {name.removeprefix(PREFIX)}:" in error.message


def _field(model: type[Credential], name: str, *, keeps: bool) -> FormField:
    info = model.model_fields[name]
    is_secret = name in model.secret_fields()
    choices = _choices(info.annotation)
    has_default = not (info.is_required() or is_secret or keeps or info.default is None)
    is_optional = not (info.is_required() or keeps)
    return FormField(
        name=f"{PREFIX}{name}",
        label=name.replace("_", " ").capitalize(),
        text=str(info.default) if has_default else "",
        help=info.description or ("may stay empty" if is_optional and not choices else ""),
        choices=("", *choices) if keeps and choices else choices,
        is_required=info.is_required() and not keeps,
        is_secret=is_secret,
        empty=_UNCHANGED,
        autocomplete="new-password" if is_secret else "off",
    )


def _choices(annotation: Any) -> tuple[str, ...]:
    """The values of a field that has few."""
    for part in _parts(annotation):
        if get_origin(part) is Literal:
            return tuple(map(str, get_args(part)))
        if part is bool:
            return ("true", "false")
    return ()


def _is_plain(annotation: Any) -> bool:
    """Whether a text is a value of the field as it is typed; pydantic reads numbers from texts."""
    plain = (str, int, float, bool, SecretStr, type(None))
    return all(part in plain or get_origin(part) is Literal for part in _parts(annotation))


def _parts(annotation: Any) -> tuple[Any, ...]:
    """The members of a union, or the annotation itself."""
    if get_origin(annotation) in (Union, types.UnionType):
        return get_args(annotation)
    return (annotation,)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text  # the model of the kind says what is wrong
