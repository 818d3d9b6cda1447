"""A command tree whose branches are imported when somebody steps on them: help and completion stay quick."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group


@dataclass(frozen=True, slots=True)
class Branch:
    """One entry of the tree: where it lives (`module:attribute`) and what to say of it meanwhile."""

    name: str
    place: str
    help: str
    panel: str

    @property
    def present(self) -> bool:
        return find_spec(self.place.partition(":")[0]) is not None

    def load(self) -> Any:
        """The real command: of a Typer application, or of a plain function."""
        module, _, attribute = self.place.partition(":")
        found = getattr(importlib.import_module(module), attribute)
        if isinstance(found, typer.Typer):
            found.info.name = self.name
            return get_group(found)
        wrapper = typer.Typer(add_completion=False)
        wrapper.command(self.name)(found)
        return get_command(wrapper)


class _Placeholder(TyperCommand):
    """Stands for a branch in lists; becomes the real command as soon as it is entered."""

    def __init__(self, branch: Branch) -> None:
        super().__init__(name=branch.name, help=branch.help, rich_help_panel=branch.panel)
        self._branch = branch

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        return self._branch.load().make_context(*args, **kwargs)


class LazyGroup(TyperGroup):
    """The root. Plural nouns are accepted too: `poller devices list`."""

    branches: ClassVar[tuple[Branch, ...]] = ()

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for branch in self.branches:
            if branch.present:
                self.add_command(_Placeholder(branch))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return self.commands.get(cmd_name) or self.commands.get(cmd_name.removesuffix("s"))

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.commands)
