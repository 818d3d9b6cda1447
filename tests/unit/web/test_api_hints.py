"""Hints of the API name calls of the API, not commands."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import poller
from poller.cli.main import Root
from poller.web.api.contract import api_hints

PACKAGE = Path(poller.__file__).parent
#: Rooms whose texts the API can show.
ROOMS = ("db", "domain", "presentation", "security", "service", "state", "web/api", "collectors")
COMMANDS = {branch.name for branch in Root.branches}
#: Commands that work on a host: the API has no call for them.
OF_HOSTS = {"beat", "collect", "db", "up", "worker"}
#: A host's own view, and the way in for a caller who has no token yet.
TEXTS_OF_HOSTS = (
    "poller collectors, on the host",
    "poller rules apply",
    "poller token add",
    "poller user add NAME --role",
)
#: The table itself, and what refuses to start a process.
NOT_SHOWN = ("api_hints.py", "network_exposure.py")
#: A part of every sealed secret, which no one reads.
SEALED_WITH = "poller credential"
_COMMAND = re.compile(r"\bpoller ([a-z]+)")
_FLAG = re.compile(r"(?<![\w-])--[a-z]{2,}")


def texts(tree: ast.Module) -> Iterator[str]:
    """Every text of a module but its docstrings, with NAME/PART for what is filled in."""
    skipped = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            skipped.add(node.value)
        if isinstance(node, ast.JoinedStr):
            skipped |= set(node.values)
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(_filled(part) for part in node.values)


def _filled(part: ast.expr) -> str:
    if isinstance(part, ast.FormattedValue):
        return "sw1/snmp" if ast.unparse(part.value) in ("facts.name", "row.name") else "sw1"
    return str(ast.literal_eval(part))


def commands() -> Iterator[str]:
    """Every text with a command that the API can show."""
    for room in ROOMS:
        for file in sorted((PACKAGE / room).rglob("*.py")):
            if file.name in NOT_SHOWN:
                continue
            for text in texts(ast.parse(file.read_text())):
                if text != SEALED_WITH and set(_COMMAND.findall(text)) & COMMANDS - OF_HOSTS:
                    yield text


@pytest.mark.parametrize("text", sorted(set(commands())))
def test_a_command_of_a_hint_becomes_a_call(text: str) -> None:
    """No command with a call, and no flag of a command line, is left. The table is api_hints.py."""
    shown = api_hints.for_api(text)
    for kept in TEXTS_OF_HOSTS:
        shown = shown.replace(kept, "")
    assert not set(_COMMAND.findall(shown)) & COMMANDS - OF_HOSTS, shown
    assert not _FLAG.search(shown), shown


@pytest.mark.parametrize(
    ("hint", "shown"),
    [
        ("did you mean ams? (or: poller site list)", "did you mean ams? (or: GET /api/v1/sites)"),
        ("poller breaker reset sw1/snmp", "POST /api/v1/breakers/7/reset"),
        (
            "poller jobs run prune --plan 2026-11-17T01:02:00Z",
            'POST /api/v1/jobs/prune/run {"plan": "2026-11-17T01:02:00Z"}',
        ),
        (
            "poller target edit sw1/snmp --enable",
            'PATCH /api/v1/devices/sw1/targets/snmp {"enabled": true}',
        ),
        ("poller worker --tags zone=dmz", "poller worker --tags zone=dmz"),
        ("send confirm: 2", "send confirm: 2"),
    ],
)
def test_names_of_a_command_are_in_its_call(hint: str, shown: str) -> None:
    """Names, values and the id of the target; what only a host can do stays a command."""
    assert api_hints.for_api(hint, target_id=7) == shown
