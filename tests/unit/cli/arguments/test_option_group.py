"""A dataclass of options becomes options of a command, and the command receives the dataclass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.main import get_command

from poller.cli.arguments.option_group import expand_options


@dataclass(frozen=True, slots=True)
class Filter:
    site: Annotated[str, typer.Option("--site", help="Only at this site.")] = ""
    limit: Annotated[int, typer.Option(min=1)] = 5


received: list[tuple[str, Filter, bool]] = []


@expand_options
def command(
    name: Annotated[str, typer.Argument()], *, chosen: Filter, strict: bool = False
) -> None:
    """The help of the command."""
    received.append((name, chosen, strict))


def run(*arguments: str) -> int:
    app = typer.Typer(add_completion=False)
    app.command()(command)
    status = get_command(app).main(list(arguments), prog_name="x", standalone_mode=False)
    return int(status or 0)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["sw1"], ("sw1", Filter(), False)),
        (["sw1", "--site", "ams", "--strict"], ("sw1", Filter("ams"), True)),
        (["--limit", "7", "sw1"], ("sw1", Filter("", 7), False)),
    ],
)
def test_the_fields_are_options_of_the_command(
    arguments: list[str], expected: tuple[str, Filter, bool]
) -> None:
    """Arguments, fields and other options stand in any order."""
    received.clear()
    assert run(*arguments) == 0
    assert received == [expected]


def test_the_limits_of_a_field_hold() -> None:
    """Typer checks a field as it checks a parameter."""
    with pytest.raises(Exception, match="greater than or equal to 1"):
        run("sw1", "--limit", "0")


def test_the_command_keeps_its_name_and_its_help() -> None:
    """The help of the command is the docstring of the function."""
    assert command.__name__ == "command"
    assert command.__doc__ == "The help of the command."
