"""The commands that the docs tell people to type: they parse, and name what exists."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from poller.cli import main
from poller.domain.alerts.rules import builtin_rules
from poller.domain.inventory import target_filter

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [DOCS.parent / "README.md", *sorted(DOCS.glob("*.md"))]
_SHELL = re.compile(r"^```(?:sh|console)?\n(.*?)^```", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`(poller [^`]* --where [^`]*)`")
_APART = re.compile(r"\s\|\s|&&|\|\||;\s")


def commands(page: Path) -> list[list[str]]:
    """The words of each command in the shell blocks of a page, and of filters in its text."""
    text = page.read_text()
    lines = [
        part.strip()
        for block in _SHELL.findall(text)
        for line in block.replace("\\\n", " ").splitlines()
        for part in _APART.split(line)
    ]
    lines += [part.replace("\n", " ") for part in _INLINE.findall(text)]
    wanted = [line for line in lines if re.match(r"poller [a-z]", line)]
    found = [shlex.split(line, comments=True)[1:] for line in wanted]
    return [list(_until_redirection(words)) for words in found if "the" not in words]


def _until_redirection(words: list[str]) -> Iterator[str]:
    for word in words:
        if word in ("<", ">", ">>", "&"):
            return
        yield word


def parse(words: list[str]) -> None:
    """Parse a command as the program does, without running it."""
    command: Any = typer.main.get_command(main.app)
    context, name = None, "poller"
    while hasattr(command, "resolve_command"):
        context = command.make_context(name, words, parent=context)
        rest = [*getattr(context, "_protected_args", []), *context.args]
        if not rest:
            return
        name, command, words = command.resolve_command(context, rest)
    command.make_context(name, words, parent=context)


def values_of(option: str, words: list[str]) -> list[str]:
    return [after for word, after in pairwise(words) if word == option]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_are_those_of_the_program(page: Path) -> None:
    """Names, options and their types; filters parse."""
    for words in commands(page):
        parse(words)
        for where in values_of("--where", words):
            target_filter.parse(where)


def test_rules_that_are_named_exist() -> None:
    """A rule of a command is built in, a ready one, or made by a command of the same page."""
    document = yaml.safe_load((DOCS / "examples" / "rules.yaml").read_text())
    ready = {each["name"] for each in document["rules"]}
    known = ready | {rule.name for rule in builtin_rules.rules()}
    checked = 0
    for page in PAGES:
        found = commands(page)
        made = {words[2] for words in found if words[:2] == ["rules", "add"]}
        for words in found:
            named = set(values_of("--rule", words))
            assert named <= known | made, f"{page.name}: {words}"
            checked += len(named)
    assert checked
