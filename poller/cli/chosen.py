"""Which targets does a person mean, and who is that person? `DEVICE` is all of its targets, `DEVICE/TARGET` is one."""

from __future__ import annotations

import os
import pwd
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from poller import errors
from poller.cli import completion

if TYPE_CHECKING:
    from sqlalchemy.engine import Engine

    from poller.db.targets import Target

_PLACE = "DEVICE[/TARGET]"
_HELP = "A device, or one target of it."

One = Annotated[str, typer.Argument(metavar=_PLACE, help=_HELP, autocompletion=completion.devices)]
Some = Annotated[
    list[str] | None,
    typer.Argument(metavar=f"[{_PLACE}...]", help="Devices, or single targets.", autocompletion=completion.devices),
]
Many = Annotated[
    list[str],
    typer.Argument(metavar=f"{_PLACE}...", help="Devices, or single targets.", autocompletion=completion.devices),
]


def targets(engine: Engine, words: Sequence[str]) -> dict[int, Target]:
    """By id, in the order in which they were named. Raises NotFound for the first name that does not exist."""
    found: dict[int, Target] = {}
    for word in words:
        found.update({target.id: target for target in _targets(engine, word)})
    return found


def _targets(engine: Engine, word: str) -> list[Target]:
    from poller.db import targets

    device, slash, name = word.partition("/")
    if slash:
        return [targets.show(engine, device, name)]
    of_device = targets.of_device(engine, device)
    if not of_device:
        hint = f"poller target add {device} --collector snmp"
        raise errors.NotFound(f'device "{device}" has no target', hint=hint)
    return of_device


def who() -> str:
    """The name of the user who runs this, for the record: the system's, not what the environment claims."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"
