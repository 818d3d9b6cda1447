"""Which targets does a person mean, and who is that person? `DEVICE` is all of its targets, `DEVICE/TARGET` is one."""

from __future__ import annotations

import os
import pwd
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poller import errors
from poller.cli.arguments import completion
from poller.domain.inventory.did_you_mean import nearest

if TYPE_CHECKING:
    from sqlalchemy.engine import Engine

    from poller.db.inventory.targets import Target

_PLACE = "DEVICE[/TARGET]"
_HELP = "A device, or one target of it."

One = Annotated[str, typer.Argument(metavar=_PLACE, help=_HELP, autocompletion=completion.devices)]
Some = Annotated[
    list[str] | None,
    typer.Argument(
        metavar=f"[{_PLACE}...]",
        help="Devices, or single targets.",
        autocompletion=completion.devices,
    ),
]
Many = Annotated[
    list[str],
    typer.Argument(
        metavar=f"{_PLACE}...",
        help="Devices, or single targets.",
        autocompletion=completion.devices,
    ),
]


def place(word: str, target: str | None = None) -> tuple[str, str | None]:
    """The device and, if one is named in either way, its target."""
    device, slash, name = word.partition("/")
    if slash and not name:
        raise errors.InvalidInput(
            f'"{word}" has no target behind the slash', hint=f"leave out the slash: {device}"
        )
    if slash and target not in (None, name):
        raise errors.InvalidInput(
            f'"{word}" and "{target}" are two targets', hint=f"{device}/{name} or {device}/{target}"
        )
    return device, name if slash else target


def target(word: str, name: str | None) -> tuple[str, str]:
    """The device and its target, which has to be named in one of the two ways."""
    device, found = place(word, name)
    if found is None:
        raise errors.InvalidInput(
            f'which target of "{device}"?', hint=f"poller target list {device}"
        )
    return device, found


def device_only(ctx: typer.Context, param: typer.CallbackParam, value: str | None) -> str | None:
    """For an argument that is a device alone, whatever lists print. Raises InvalidInput with the words that do."""
    device, slash, name = (value or "").partition("/")
    if not slash or ctx.resilient_parsing:
        return value
    hint = f'leave out "/{name}": {ctx.command_path} {device}'
    raise errors.InvalidInput(
        f'{param.metavar}: "{value}" is a target, and this takes a device', hint=hint
    )


def device_argument(metavar: str) -> Any:
    """The argument of a command that takes one device."""
    return typer.Argument(
        metavar=metavar,
        help="The device's name.",
        autocompletion=completion.devices,
        callback=device_only,
    )


def targets(engine: Engine, words: Sequence[str]) -> dict[int, Target]:
    """By id, in the order in which they were named. Raises NotFound for the first name that does not exist."""
    found: dict[int, Target] = {}
    for word in words:
        found.update({target.id: target for target in _targets(engine, word)})
    return found


def _targets(engine: Engine, word: str) -> list[Target]:
    from poller.db.inventory import targets

    device, name = place(word)
    if name:
        return [targets.show(engine, device, name)]
    of_device = targets.of_device(engine, device)
    if not of_device:
        hint = f"poller target add {device} --collector snmp"
        raise errors.NotFound(f'device "{device}" has no target', hint=hint)
    return of_device


def refuse_unknown(noun: str, name: str, known: Sequence[str], command: str = "") -> None:
    """Raises NotFound, with the nearest name, for one that is not known; `command` lists them."""
    if name in known:
        return
    near, command = nearest(name, known), command or f"poller {noun} list"
    hint = f"did you mean {near}? (or: {command})" if near else command
    raise errors.NotFound(f'no {noun} named "{name}"', hint=hint)


def who() -> str:
    """The name of the user who runs this, for the record: the system's, not what the environment claims."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"
