"""The command tree: quick, complete, and open to plurals."""

from __future__ import annotations

import pytest
import typer
from typer.core import TyperGroup
from typer.main import get_command

from poller.cli import main
from poller.cli.command_tree import Branch, LazyGroup


@pytest.mark.parametrize("branch", main.Root.branches, ids=lambda branch: branch.name)
def test_every_branch_of_the_table_can_be_entered(branch: Branch) -> None:
    """The table names modules and attributes that exist, and each has help."""
    command = branch.load()
    assert command.help
    if isinstance(command, TyperGroup):
        assert command.commands
        assert all(sub.help for sub in command.commands.values())


def test_a_branch_without_a_module_is_shown_and_fails() -> None:
    """A missing module is an error of the program, so no list hides the command."""
    branch = Branch("ghost", "poller.cli.no_such_module:app", "x", "y")

    class Haunted(LazyGroup):
        branches = (branch,)

    assert Haunted(name="poller").list_commands(None) == ["ghost"]
    with pytest.raises(ModuleNotFoundError):
        branch.load()


def test_names_and_helps_of_the_table_are_unique_and_short() -> None:
    """Each command has one line in the list."""
    names = [branch.name for branch in main.Root.branches]
    assert len(names) == len(set(names))
    assert all(len(branch.help) <= 60 for branch in main.Root.branches)


def test_singular_and_plural_are_the_same_command() -> None:
    """`poller devices` is `poller device`; an unknown word is no command."""
    root = get_command(main.app)
    context = typer.Context(root)
    assert isinstance(root, TyperGroup)
    assert root.get_command(context, "devices") is root.get_command(context, "device")
    assert root.get_command(context, "collector") is root.get_command(context, "collectors")
    assert root.get_command(context, "gadgets") is None


@pytest.mark.parametrize("branch", main.Root.branches, ids=lambda branch: branch.name)
def test_a_flag_is_shown_without_a_type(branch: Branch, capsys: pytest.CaptureFixture[str]) -> None:
    """The help shows `--json`, not `--json <bool>`, in every command of the tree."""
    command = branch.load()
    lines = [[branch.name], *([branch.name, name] for name in getattr(command, "commands", ()))]
    for line in lines:
        assert main.run([*line, "--help"]) == 0
        shown = capsys.readouterr().out
        assert "--help" in shown
        assert "<bool>" not in shown
