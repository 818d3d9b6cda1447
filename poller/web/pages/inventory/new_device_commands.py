"""The commands that do what the page of a new device does: discover, collect, add."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from poller import errors
from poller.domain.inventory import host_port
from poller.web.pages.device import target_form
from poller.web.pages.inventory import new_device_form, new_target_form
from poller.web.pages.inventory.new_device_form import NewDeviceForm

#: The options of `poller device add`, by the field that they set.
_WORDS = {"site": "--site", "credential": "--credential", "parent": "--parent"}
_LISTS = {"tags": "--tag", "requires": "--require"}

Targets = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Takes:
    """The needs of a collector: credentials by name, and the port of an address."""

    credentials: Collection[str] = ()
    port_option: str = ""


_NOTHING = Takes()


def discover(form: NewDeviceForm) -> str:
    """Return the command that looks what answers."""
    words = ["poller", "discover", form.texts["address"] or "ADDRESS"]
    for name in form.credentials:
        words += ["--credential", name]
    return shlex.join(words)


def collect(form: NewDeviceForm, targets: Targets, takes: Mapping[str, Takes]) -> list[str]:
    """Return the commands that poll the targets once."""
    return [_collect(form, each, takes.get(each["collector"], _NOTHING)) for each in targets]


def add(form: NewDeviceForm, targets: Targets) -> list[str]:
    """Return the commands that add the same device with the same targets."""
    fields = new_device_form.device_fields(form)
    device = fields["name"] or "NAME"
    words = ["poller", "device", "add", device, form.texts["address"] or "ADDRESS"]
    for name, option in _WORDS.items():
        if name in fields:
            words += [option, fields[name]]
    for name, option in _LISTS.items():
        for word in fields.get(name, ()):
            words += [option, word]
    first, rest = _split(targets)
    words += ["--collector", first.get("collector", "")]
    for name in ("interval", "timeout"):
        if name in first:
            words += [f"--{name}", first[name]]
    words += _options(first)
    return [shlex.join(words), *(new_target_form.command(device, each) for each in rest)]


def _split(targets: Targets) -> tuple[Mapping[str, Any], Targets]:
    """Return the target that `device add` can add, and the others."""
    if targets and not {"name", "credential"} & targets[0].keys():
        return targets[0], targets[1:]
    return {}, targets


def _collect(form: NewDeviceForm, fields: Mapping[str, Any], takes: Takes) -> str:
    address = form.texts["address"]
    if not takes.port_option or takes.port_option in fields.get("options", {}):
        address = _without_port(address)
    words = ["poller", "collect", fields["collector"], address or "ADDRESS"]
    credential = fields.get("credential") or form.texts["credential"]
    if credential in takes.credentials:
        words += ["--credential", credential]
    return shlex.join([*words, *_options(fields)])


def _without_port(address: str) -> str:
    try:
        return host_port.parse(address).host
    except errors.InvalidInput:
        return address


def _options(fields: Mapping[str, Any]) -> list[str]:
    words = []
    for key, value in fields.get("options", {}).items():
        words += ["-o", f"{key}={target_form.text_of(value)}"]
    return words
