"""Targets named on the command line: `DEVICE` is all of its targets, `DEVICE/TARGET` is one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poller import errors
from poller.cli.arguments import completion

if TYPE_CHECKING:
    from sqlalchemy.engine import Engine

    from poller.db.inventory.targets import Target

_METAVAR = "DEVICE[/TARGET]"

TargetWord = Annotated[
    str,
    typer.Argument(
        metavar=_METAVAR,
        help="A device, or one target of it.",
        autocompletion=completion.devices,
    ),
]
OptionalTargetWord = Annotated[
    str | None,
    typer.Argument(
        metavar=f"[{_METAVAR}]",
        help="A device, or one target of it.",
        autocompletion=completion.devices,
    ),
]
OptionalTargetWords = Annotated[
    list[str] | None,
    typer.Argument(
        metavar=f"[{_METAVAR}...]",
        help="Devices, or single targets.",
        autocompletion=completion.devices,
    ),
]
TargetOption = Annotated[
    str | None,
    typer.Option(help="Only this target of the device.", autocompletion=completion.targets),
]


def split_target(word: str, target: str | None = None) -> tuple[str, str | None]:
    """The device and, if it is named after the slash or as `target`, its target."""
    device, slash, name = word.partition("/")
    if not slash:
        return device, target
    if not name:
        raise errors.InvalidInput(
            f'"{word}" has no target after the slash', hint=f"leave out the slash: {device}"
        )
    if target not in (None, name):
        choices = f"{device}/{name} or {device}/{target}"
        raise errors.InvalidInput(f'"{word}" and "{target}" are two targets', hint=choices)

    return device, name


def one_target(word: str, target: str | None) -> tuple[str, str]:
    """The device and its target. Raises InvalidInput if neither form names a target."""
    device, name = split_target(word, target)
    if name is None:
        raise errors.InvalidInput(
            f'which target of "{device}"?', hint=f"poller target list {device}"
        )

    return device, name


def device_only(ctx: typer.Context, param: typer.CallbackParam, value: str | None) -> str | None:
    """Refuse `DEVICE/TARGET`, which lists print, where a command takes a device alone."""
    device, slash, name = (value or "").partition("/")
    if not slash or ctx.resilient_parsing:
        return value

    raise errors.InvalidInput(
        f'{param.metavar}: "{value}" is a target, and this takes a device',
        hint=f'leave out "/{name}": {ctx.command_path} {device}',
    )


def device_argument(metavar: str) -> Any:
    """The argument of a command that takes one device."""
    return typer.Argument(
        metavar=metavar,
        help="The device's name.",
        autocompletion=completion.devices,
        callback=device_only,
    )


def named_pairs(words: Sequence[str]) -> list[tuple[str, str | None]]:
    """Each word as a device and, if it is named, its target. Raises InvalidInput."""
    return [split_target(word) for word in words]


def targets(engine: Engine, words: Sequence[str]) -> dict[int, Target]:
    """The named targets by id, in the order of the words. Raises NotFound for an unknown name."""
    from poller.service.operations import target_choice

    found: dict[int, Target] = {}
    for device, name in named_pairs(words):
        for target in target_choice.of_device(engine, device, name):
            found[target.id] = target
    return found


def no_target(device: str) -> errors.NotFound:
    """The error for a device without any target."""
    from poller.service.operations import target_choice

    return target_choice.no_target(device)
