"""Every command in a text of the program exists and has the named options."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.main import get_command

import poller
from poller.cli import main

SOURCES = Path(poller.__file__).parent
#: A command starts a text, or follows a backtick, `:`, `(`, `next` or `or`.
COMMAND = re.compile(r"(?:^|`|: |\(|\bor )poller( [a-z][\w-]*(?: [\w./=-]+)*)")
#: Words of prose that may follow a command without a comma.
PROSE = {"starts", "shows", "lists", "names", "chooses", "is", "and", "running"}


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Every string of a module; placeholders become 1, which is a name as well as a number."""
    parts: set[int] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.JoinedStr):
            parts.update(id(value) for value in node.values)
            yield (
                node.lineno,
                "".join(v.value if isinstance(v, ast.Constant) else "1" for v in node.values),
            )
        elif (
            isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts
        ):
            yield node.lineno, node.value


def commands() -> Iterator[tuple[str, str]]:
    for path in sorted(SOURCES.rglob("*.py")):
        for line, text in texts(path):
            for found in COMMAND.findall(text):
                words = list(found.split())
                while words and words[-1] in PROSE:
                    words.pop()
                yield f"{path.relative_to(SOURCES)}:{line}", " ".join(words)


def test_the_texts_name_commands() -> None:
    """Without this check the next test could test nothing."""
    named = {command.split()[0] for _, command in commands() if command}
    assert {"device", "target", "credential", "site", "status", "up", "db"} <= named


@pytest.mark.parametrize(
    ("place", "command"), sorted(set(commands())), ids=lambda text: text.replace(" ", "_")
)
def test_a_named_command_exists_and_takes_its_options(place: str, command: str) -> None:
    """The command is parsed, not run."""
    words = shlex.split(command)
    root = get_command(main.app)
    context = typer.Context(root, info_name="poller")
    while words and (found := getattr(context.command, "get_command", None)):
        branch = found(context, words[0])
        assert branch is not None, f"{place} names `poller {command}`: no command {words[0]}"
        context = branch.make_context(words.pop(0), [], parent=context, resilient_parsing=True)
    options = {
        name
        for param in context.command.get_params(context)
        for name in (*param.opts, *param.secondary_opts)
    }
    unknown = [word for word in words if word.startswith("-") and word not in options]
    assert unknown == [], f"{place} names `poller {command}`"
