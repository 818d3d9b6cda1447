"""A command tree that imports a branch when it is entered: help and completion stay quick."""

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
    """A group of commands whose help shows a flag as `--json`, not as `--json <bool>`."""

    def get_params(self, ctx: Any) -> Any:
        return _plain_flags(super().get_params(ctx))


class Listing(Group):
    """A group whose default command is `list`: `collectors snmp` is `collectors list snmp`."""

    def parse_args(self, ctx: Any, args: Any) -> Any:
        words = (*self.commands, *ctx.help_option_names)
        if not args or args[0] not in words:
            args = ["list", *args]
        return super().parse_args(ctx, args)


def _plain_flags(params: Any) -> Any:
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
    return params


@dataclass(frozen=True, slots=True)
class Branch:
    """One command of the root: its name, `module:attribute`, line in the help, and panel."""

    name: str
    path: str
    help: str
    panel: str

    def load(self) -> Any:
        """Import the command. The attribute is a Typer application or a plain function."""
        module, _, attribute = self.path.partition(":")
        loaded = getattr(importlib.import_module(module), attribute)
        if not isinstance(loaded, typer.Typer):
            wrapper = typer.Typer(add_completion=False)
            wrapper.command(self.name, cls=Command)(loaded)
            return get_command(wrapper)

        loaded.info.name = self.name
        if loaded.info.cls is not Listing:
            loaded.info.cls = Group

        for command in loaded.registered_commands:
            command.cls = Command

        return get_group(loaded)


class _Placeholder(TyperCommand):
    """Stands for a branch in lists; the real command is loaded when it is entered."""

    def __init__(self, branch: Branch) -> None:
        super().__init__(name=branch.name, help=branch.help, rich_help_panel=branch.panel)
        self._branch = branch

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        return self._branch.load().make_context(*args, **kwargs)


class LazyGroup(Group):
    """The root. It accepts singular and plural: `poller devices list`, `poller collector`."""

    branches: ClassVar[tuple[Branch, ...]] = ()

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for branch in self.branches:
            self.add_command(_Placeholder(branch))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of this name, or of its singular or plural."""
        singular = cmd_name.removesuffix("s")
        plural = f"{cmd_name}s"
        for name in (cmd_name, singular, plural):
            if name in self.commands:
                return self.commands[name]
        return None

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.commands)
