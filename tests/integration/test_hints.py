"""The commands that errors and results suggest are executed here."""

from __future__ import annotations

import io
import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import redis

from poller import bootstrap
from poller.cli import main

#: A command in a hint stands at its start, in backticks, or behind `:` or `(or:`.
COMMAND = re.compile(r"(?:^|`|: )poller( [^`,;()]+)")


class Result(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def hint(self) -> str:
        return str(json.loads(self.err.splitlines()[-1])["error"]["try"])


Cli = Callable[..., Result]


@pytest.fixture
def cli(
    home: Path, valkey_url: str, redis_client: redis.Redis, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Cli:  # fmt: skip
    """Run command lines on a home with a small inventory; every secret is `public`."""
    monkeypatch.setenv("POLLER_REDIS_URL", valkey_url)

    def run(*arguments: str) -> Result:
        monkeypatch.setattr("sys.stdin", io.StringIO("public\n"))
        bootstrap.services.cache_clear()
        return Result(main.run(arguments), *capsys.readouterr())

    for line in (
        "credential add snmp-ro --kind community",
        "device add core-sw-1 192.0.2.1 --site ams --credential snmp-ro --collector snmp",
        "device add bare 192.0.2.2",
    ):
        assert run(*line.split()).code == 0
    return run


@pytest.mark.parametrize(
    ("mistake", "code"),
    [
        ("device show core-sw1", 3),
        ("device show nothing-like-it", 3),
        ("device edit core-sw-1", 2),
        ("device add core-sw-1 192.0.2.3", 2),
        ("device rm core-sw1 --yes", 3),
        ("device nonsense", 2),
        ("device list --nonsense", 2),
        ("target edit core-sw-1 snmp", 2),
        ("target add nobody --collector snmp", 3),
        ("credential add snmp-ro --kind community", 2),
        ("credential rotate snmp-rw", 3),
        ("credential rm snmp-ro --yes", 2),
        ("site edit ams", 2),
        ("site edit amsterdam --require a=b", 3),
        ("site rm ams --yes", 2),
        ("poll bare", 3),
        ("poll core-sw-1 --target slow", 3),
        ("poll core-sw-1", 3),
        ("status --limit 5", 2),
        ("nonsense", 2),
    ],
)
def test_the_command_an_error_suggests_works(cli: Cli, mistake: str, code: int) -> None:
    """The suggested command exits with 0; placeholders are filled in first.

    `poller status` exits with 1 here: nothing is scheduled.
    """
    refused = cli(*shlex.split(mistake), "--json")
    assert refused.code == code, refused
    commands = COMMAND.findall(refused.hint)
    assert commands, f"{mistake}: {refused.hint!r} names no command"
    for command in commands:
        words = command.replace("NAME", "core-sw-1").replace("OTHER", '""')
        done = cli(*shlex.split(words))
        expected = 1 if words.split()[0] == "status" else 0
        assert done.code == expected, (mistake, command, done)


def test_a_database_that_is_behind_is_upgraded_by_its_hint(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A configured database is never upgraded unasked, and the suggested command upgrades it."""
    monkeypatch.setenv("POLLER_DATABASE_URL", f"sqlite:///{tmp_path / 'own.db'}")
    refused = cli("device", "list", "--json")
    [command] = COMMAND.findall(refused.hint)
    assert cli(*shlex.split(command)).code == 0
    assert cli("device", "list").code == 0


def test_the_next_step_a_command_names_works(cli: Cli) -> None:
    """`next: poller target add ...` after `poller device add` works."""
    added: Any = cli("device", "add", "new", "192.0.2.9", "--collector", "")
    [command] = COMMAND.findall(added.err)
    assert cli(*shlex.split(command.splitlines()[0])).code == 0
