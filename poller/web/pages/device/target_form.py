"""The form of a target: schedule, credential, and the options that its collector declares.

Only fields whose text differs from the stored one are changes, so a masked secret stays as it is.
The checks are those of the service, the same as for a command.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from poller.db.inventory.targets import Target
from poller.domain.inventory import duration
from poller.domain.scheduling.interval import Policy

OPTION = "option."
#: The hidden field with the version that was edited.
VERSION = "version"
_YES_NO = ("true", "false")


@dataclass(frozen=True, slots=True)
class FormField:
    """One input. `choices` make it a list, the first of which may be empty; else it is a text.

    A secret has no text: it is typed, sent, and never comes back.
    """

    name: str
    label: str
    text: str
    help: str = ""
    choices: Sequence[str] = ()
    error: str = ""
    is_long: bool = False
    is_required: bool = False
    suggestions: Sequence[str] = ()
    empty: str = "(default)"  # what an empty choice is called
    is_secret: bool = False
    autocomplete: str = "off"

    @property
    def key(self) -> str:
        """The id of the input."""
        return f"field-{self.name.replace('.', '-')}"


@dataclass(frozen=True, slots=True)
class TargetForm:
    """The fields of a target, and what was wrong with the last try."""

    device: str
    target: str
    collector: str
    version: str
    schedule: Sequence[FormField]
    options: Sequence[FormField]
    error: str = ""
    hint: str = ""

    @property
    def fields(self) -> Sequence[FormField]:
        return [*self.schedule, *self.options]


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes of a sent form. An option that is None is removed."""

    fields: Mapping[str, object]
    options: Mapping[str, str | None]

    @property
    def is_empty(self) -> bool:
        return not self.fields and not self.options


def build(target: Target, described: Sequence[Mapping[str, Any]]) -> TargetForm:
    """Return the form of a target with the options that its collector describes."""
    return TargetForm(
        device=target.device,
        target=target.name,
        collector=target.collector,
        version=target.tag,
        schedule=_schedule(target),
        options=[option_field(option, target.options) for option in described],
    )


def changes(form: TargetForm, sent: Mapping[str, str]) -> Changes:
    """Return the fields whose text was changed. Fields that were not sent stay."""
    fields: dict[str, object] = {}
    options: dict[str, str | None] = {}
    for each in form.fields:
        text = _sent(each, sent)
        if text == each.text:
            continue
        if each.name.startswith(OPTION):
            options[each.name.removeprefix(OPTION)] = text or None
        else:
            fields[each.name] = text == "true" if each.name == "enabled" else text
    return Changes(fields, options)


def refused(
    form: TargetForm, sent: Mapping[str, str], message: str, hint: str, field: str
) -> TargetForm:
    """Return the form with the texts that were sent, and the error beside its field."""
    named = f"{OPTION}{field.removeprefix('options.')}" if field.startswith("options.") else field

    def kept(each: FormField) -> FormField:
        is_wrong = each.name == named or _is_named(each, message)
        return replace(each, text=_sent(each, sent), error=message if is_wrong else "")

    return replace(
        form,
        schedule=[kept(each) for each in form.schedule],
        options=[kept(each) for each in form.options],
        error=message,
        hint=hint,
    )


def command(form: TargetForm, changed: Changes) -> str:
    """Return the command that makes the same changes."""
    words = ["poller", "target", "edit", f"{form.device}/{form.target}"]
    for name, value in changed.fields.items():
        if name == "enabled":
            words.append("--enable" if value else "--disable")
        else:
            words += [f"--{name}", str(value)]
    for option, text in changed.options.items():
        words += ["-o", f"{option}={text or ''}"]
    return shlex.join(words)


def text_of(value: object) -> str:
    """An option's value as it is typed: a list with commas, a mapping as JSON."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple | set | frozenset):
        words = sorted(value) if isinstance(value, set | frozenset) else list(value)
        if all(isinstance(word, str | int | float) and "," not in str(word) for word in words):
            return ",".join(map(str, words))
        return json.dumps(words, ensure_ascii=False)
    if isinstance(value, Mapping):
        return json.dumps(dict(value), ensure_ascii=False) if value else ""
    return str(getattr(value, "value", value))


def _sent(field: FormField, sent: Mapping[str, str]) -> str:
    return sent.get(field.name, field.text).replace("\r\n", "\n").strip()


def _is_named(field: FormField, message: str) -> bool:
    """Whether an error names an option: `option "timeout": ...`, `options.timeout: ...`."""
    option = field.name.removeprefix(OPTION)
    if option == field.name:
        return False
    return f'"{option}"' in message or f"options.{option}:" in message


def _schedule(target: Target) -> list[FormField]:
    is_adaptive = target.policy is Policy.ADAPTIVE
    found = [
        FormField("enabled", "Polled", text_of(target.enabled), choices=_YES_NO),
        FormField(
            "policy",
            "Policy",
            target.policy.value,
            "adaptive: the interval follows changes and errors between its limits",
            [policy.value for policy in Policy],
        ),
        _length("interval", "Every", target.interval_ms, "such as 30s, 5m or 1h"),
        _length("timeout", "Time-out", target.timeout_ms, "the longest time of one poll"),
    ]
    if is_adaptive:
        found.append(_length("min", "At least every", target.min_ms))
        found.append(_length("max", "At most every", target.max_ms))
    credential = "its name; empty: that of the device"
    found.append(FormField("credential", "Credential", target.credential, credential))
    return found


def _length(name: str, label: str, value_ms: int | None, help_: str = "") -> FormField:
    text = "" if value_ms is None else duration.format_ms(value_ms)
    return FormField(name, label, text, help_)


def option_field(described: Mapping[str, Any], stored: Mapping[str, Any]) -> FormField:
    """Return the field of an option that a collector describes."""
    name = described["name"]
    kind = described["type"]
    text = text_of(stored.get(name)) if name in stored else ""
    default = text_of(described["default"])
    about = [described["description"], kind]
    if default:
        about.append(f"default {default}")
    words = kind.split("|")
    choices = ["", *words] if len(words) > 1 and " " not in kind else []
    if text and choices and text not in choices:
        choices.append(text)
    return FormField(
        name=f"{OPTION}{name}",
        label=name,
        text=text,
        help="; ".join(part for part in about if part),
        choices=choices,
        is_long="by name" in kind or len(text) > 60 or "\n" in text,
        is_required=described["required"],
    )
