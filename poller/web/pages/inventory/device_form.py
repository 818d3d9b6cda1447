"""The form of a device: its own fields, for a new device and for one that exists.

Only fields whose text differs from the stored one are changes. The checks are those of the service.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from poller import errors
from poller.db.inventory.devices import Device
from poller.web.pages.device.target_form import FormField, text_of

VERSION = "version"
#: Fields whose text is a list of words.
_LISTS = ("tags", "requires")
_LABELS = {
    "name": "Name",
    "address": "Address",
    "site": "Site",
    "tags": "Tags",
    "credential": "Credential",
    "parent": "Parent",
    "requires": "Workers need",
    "enabled": "Polled",
}
_HELP = {
    "name": "without blanks and slashes",
    "address": "an IP address or a host name; with :PORT the port of its target",
    "site": "empty: none; a new name makes a new site",
    "tags": "words for filters, with blanks between them",
    "credential": "a stored one, for all targets without their own",
    "parent": "the device through which it is reached; empty: none",
    "requires": "tags that its workers must have, such as zone=dmz",
}


@dataclass(frozen=True, slots=True)
class Choices:
    """The names that the fields of a device suggest."""

    credentials: Sequence[str] = ()
    sites: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class DeviceForm:
    """The fields of a device, and what was wrong with the last try."""

    device: str
    version: str
    fields: Sequence[FormField]
    error: str = ""
    hint: str = ""


def build(device: Device, choices: Choices) -> DeviceForm:
    """Return the form of a device that exists."""
    texts = {name: _text(value) for name, value in device.fields.items()}
    fields = [_field(name, texts[name], choices) for name in _LABELS]
    return DeviceForm(device.name, device.tag, fields)


def of_new(texts: Mapping[str, str], choices: Choices) -> list[FormField]:
    """Return the fields of a new device, with the texts that are known."""
    order = ("address", "credential", "name", "site", "tags", "parent", "requires")
    fields = [_field(name, texts.get(name, ""), choices) for name in order]
    return [_for_new(each) for each in fields]


def changes(form: DeviceForm, sent: Mapping[str, str]) -> dict[str, object]:
    """Return the fields whose text was changed. Fields that were not sent stay."""
    changed = {}
    for each in form.fields:
        text = _sent(each, sent)
        if text != each.text:
            changed[each.name] = value_of(each.name, text)
    return changed


def value_of(name: str, text: str) -> object:
    """Return the value of a field as the service takes it."""
    if name in _LISTS:
        return text.split()
    return text == "true" if name == "enabled" else text


def refused(form: DeviceForm, sent: Mapping[str, str], error: errors.PollerError) -> DeviceForm:
    """Return the form with the texts that were sent, and the error beside its field."""
    fields = marked(form.fields, sent, error)
    return replace(form, fields=fields, error=str(error), hint=error.hint)


def marked(
    fields: Sequence[FormField], sent: Mapping[str, str], error: errors.PollerError
) -> list[FormField]:
    """Return fields with the texts that were sent, and an error beside the one that it names."""
    wrong = wrong_field(error)
    return [
        replace(each, text=_sent(each, sent), error=str(error) if each.name == wrong else "")
        for each in fields
    ]


def wrong_field(error: errors.PollerError) -> str:
    """Return the name of the field that an error is about; "" for none."""
    field = getattr(error, "field", "")
    if field or not isinstance(error, errors.ConfigError):
        return str(field)
    if isinstance(error, errors.AlreadyExists):
        return "name"
    named = error.message.partition(":")[0].partition(" ")[0]
    return named if named in _LABELS else ""


def command(device: str, changed: Mapping[str, object]) -> str:
    """Return the command that makes the same changes."""
    words = ["poller", "device", "edit", device]
    for name, value in changed.items():
        words += _words(name, value)
    return shlex.join(words)


def _words(name: str, value: object) -> list[str]:
    if name == "enabled":
        return ["--enable" if value else "--disable"]
    option = {"name": "--rename", "tags": "--tag", "requires": "--require"}.get(name, f"--{name}")
    if not isinstance(value, list):
        return [option, str(value)]
    if not value:
        return [f"--no-{name}"]
    return [word for each in value for word in (option, str(each))]


def _field(name: str, text: str, choices: Choices) -> FormField:
    listed: Sequence[str] = ()
    if name == "enabled":
        listed = ("true", "false")
    elif name == "credential":
        listed = ["", *choices.credentials]
        if text not in listed:
            listed.append(text)
    return FormField(
        name=name,
        label=_LABELS[name],
        text=text,
        help=_HELP.get(name, ""),
        choices=listed,
        is_required=name in ("name", "address"),
        suggestions=choices.sites if name == "site" else (),
        empty="(none)",
    )


def _for_new(field: FormField) -> FormField:
    if field.name == "name":
        return replace(field, help="empty: its address", is_required=False)
    return field


def _text(value: object) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{key}={each}" for key, each in value.items())
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return text_of(value)


def _sent(field: FormField, sent: Mapping[str, str]) -> str:
    return sent.get(field.name, field.text).strip()
