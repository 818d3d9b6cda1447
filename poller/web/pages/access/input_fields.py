"""Inputs of the forms of users and tokens: what was typed, and the error beside its field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from poller import errors
from poller.web.pages.device.target_form import FormField


@dataclass(frozen=True, slots=True)
class InputForm:
    """The inputs of one form, and what was wrong with the last try."""

    fields: Sequence[FormField]
    error: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A form that was refused: its name on the page, why, and what was typed but secrets."""

    form: str
    error: errors.PollerError
    texts: Mapping[str, str]


def filled(
    fields: Sequence[FormField], refusal: Refusal | None, names: Mapping[str, str]
) -> InputForm:
    """Return the inputs with what was typed, and the error beside the field that it is about.

    `names` are the beginnings of messages, each with its field, for errors without a field.
    """
    if refusal is None:
        return InputForm(fields)
    wrong = _field(refusal.error, names)
    message = _sentence(refusal.error)
    shown = [
        replace(
            each,
            text="" if each.is_secret else refusal.texts.get(each.name, each.text),
            error=message if each.name == wrong else "",
        )
        for each in fields
    ]
    return InputForm(shown, message, refusal.error.hint)


def _sentence(error: errors.PollerError) -> str:
    text = str(error)
    return f"{text[:1].upper()}{text[1:]}."


def _field(error: errors.PollerError, names: Mapping[str, str]) -> str:
    if isinstance(error, errors.InvalidInput) and error.field:
        return error.field
    return next((name for start, name in names.items() if error.message.startswith(start)), "")
