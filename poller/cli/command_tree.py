"""A command tree whose branches are imported when somebody steps on them: help and completion stay quick."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group


class Command(TyperCommand):
    """A command whose help shows a flag as `--json`, not as `--json <bool>`."""

    def get_params(self, ctx: Any) -> Any:
        return _plain_flags(super().get_params(ctx))


class Group(TyperGroup):
    def get_params(self, ctx: Any) -> Any:
        return _plain_flags(super().get_params(ctx))


class Listing(Group):
    """A group that is itself the list of its things: `collectors snmp` is `collectors list snmp`."""

    def parse_args(self, ctx: Any, args: Any) -> Any:
        known = (*self.commands, *ctx.help_option_names)
        return super().parse_args(ctx, args if args and args[0] in known else ["list", *args])


def _plain_flags(params: Any) -> Any:
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
    return params


@dataclass(frozen=True, slots=True)
class Branch:
    """One entry of the tree: where it lives (`module:attribute`) and what to say of it meanwhile."""

    name: str
    place: str
    help: str
    panel: str

    def load(self) -> Any:
        """The real command: of a Typer application, or of a plain function."""
        module, _, attribute = self.place.partition(":")
        found = getattr(importlib.import_module(module), attribute)
        if isinstance(found, typer.Typer):
            found.info.name = self.name
            found.info.cls = found.info.cls if found.info.cls is Listing else Group
            for command in found.registered_commands:
                command.cls = Command
            return get_group(found)
        wrapper = typer.Typer(add_completion=False)
        wrapper.command(self.name, cls=Command)(found)
        return get_command(wrapper)


class _Placeholder(TyperCommand):
    """Stands for a branch in lists; becomes the real command as soon as it is entered."""

    def __init__(self, branch: Branch) -> None:
        super().__init__(name=branch.name, help=branch.help, rich_help_panel=branch.panel)
        self._branch = branch

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        return self._branch.load().make_context(*args, **kwargs)


class LazyGroup(Group):
    """The root. Singular and plural are accepted: `poller devices list`, `poller collector`."""

    branches: ClassVar[tuple[Branch, ...]] = ()

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for branch in self.branches:
            self.add_command(_Placeholder(branch))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        names = (cmd_name, cmd_name.removesuffix("s"), f"{cmd_name}s")
        name = next((name for name in names if name in self.commands), "")
        return self.commands.get(name)

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.commands)
