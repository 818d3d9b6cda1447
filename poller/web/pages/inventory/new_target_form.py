"""The form of a new target: a collector, a name, a schedule, and the options of the collector."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from poller.web.pages.device import target_form
from poller.web.pages.device.target_form import OPTION, FormField, TargetForm


def build(
    device: str,
    collector: str,
    described: Sequence[Mapping[str, Any]],
    credentials: Sequence[str],
) -> TargetForm:
    """Return the form of a new target with the options that its collector describes."""
    schedule = [
        FormField("name", "Name", "", f"on the device; empty: {collector}"),
        FormField("interval", "Every", "", "such as 30s, 5m or 1h; empty: the default"),
        FormField("timeout", "Time-out", "", "the longest time of one poll"),
        FormField(
            "credential",
            "Credential",
            "",
            "a stored one; empty: that of the device",
            ["", *credentials],
            empty="(that of the device)",
        ),
    ]
    options = [target_form.option_field(each, {}) for each in described]
    return TargetForm(device, "", collector, "", schedule, options)


def fields(form: TargetForm, sent: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of the target as the service takes them."""
    given: dict[str, Any] = {"collector": form.collector}
    options = {}
    for name, text in _typed(form, sent):
        if name.startswith(OPTION):
            options[name.removeprefix(OPTION)] = text
        else:
            given[name] = text
    return {**given, "options": options}


def command(device: str, fields: Mapping[str, Any]) -> str:
    """Return the command that adds the same target."""
    words = ["poller", "target", "add", device]
    for name, value in fields.items():
        if name != "options":
            words += [f"--{name}", str(value)]
    for option, value in fields["options"].items():
        words += ["-o", f"{option}={target_form.text_of(value)}"]
    return shlex.join(words)


def _typed(form: TargetForm, sent: Mapping[str, str]) -> list[tuple[str, str]]:
    found = []
    for each in form.fields:
        text = sent.get(each.name, "").replace("\r\n", "\n").strip()
        if text:
            found.append((each.name, text))
    return found
