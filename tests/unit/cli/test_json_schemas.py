"""The names of the JSON schemas follow the commands, whatever the modules are called."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from poller.cli import commands
from poller.cli.main import Root

FOLDER = Path(commands.__file__).parent
SCHEMA = re.compile(r"poller\.([a-z]+)(?:\.([a-z-]+))?/\d+")
#: One event of `poller events --follow`, the plan of a dry run, and the list of `status --failing`.
OF_OPTIONS = {"event", "deadletter.plan", "status.failing"}


def schemas() -> Iterator[tuple[str, str | None]]:
    """Every schema that a command module names, as (command, subcommand)."""
    for path in sorted(FOLDER.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                match = SCHEMA.fullmatch(node.value)
                if match:
                    yield match[1], match[2]


def test_a_schema_is_named_after_its_command() -> None:
    """Programs read these names, so a renamed module must not change one."""
    branches = {branch.name: branch for branch in Root.branches}
    found = set(schemas())
    assert ("events", None) in found
    assert ("settings", None) in found

    strangers = []
    for command, subcommand in sorted(found, key=str):
        name = command if subcommand is None else f"{command}.{subcommand}"
        if name in OF_OPTIONS:
            continue
        branch = branches.get(command)
        if branch is None or (subcommand and subcommand not in branch.load().commands):
            strangers.append(name)
    assert strangers == []
