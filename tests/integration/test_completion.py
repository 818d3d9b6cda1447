"""The Tab key: names from the database within 200 ms, or nothing; never an error, never a file."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from poller import bootstrap
from poller.cli.arguments import completion
from poller.db import engine as sql
from poller.db import migrate
from poller.db.inventory import credential_rows, devices
from poller.domain.inventory.draft import DeviceDraft, TargetDraft

PROGRAM = [sys.executable, "-c", "from poller.cli.main import main; main()"]
Tab = Callable[..., list[str]]


@pytest.fixture
def tab(home: Path, tmp_path: Path) -> Tab:
    """The words that bash offers for a line; the process must print nothing else."""

    def offers(line: str, **more: str) -> list[str]:
        words = {
            "_POLLER_COMPLETE": "complete_bash",
            "COMP_WORDS": line,
            "COMP_CWORD": str(line.count(" ")),
        }
        done = subprocess.run(
            PROGRAM,
            env={**os.environ, **words, **more},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.stderr == ""
        return done.stdout.split()

    return offers


def fill(url: str) -> None:
    engine = sql.create(url)
    migrate.upgrade(engine)
    credential_rows.add(engine, "snmp-ro", "community", "v1:x:1")
    first = [TargetDraft(collector="snmp"), TargetDraft(collector="snmp", name="slow")]
    devices.add(engine, DeviceDraft("core-1", "192.0.2.1", site="ams"), first)
    devices.add(engine, DeviceDraft("core_2%", "192.0.2.2", site="fra"))
    devices.add(engine, DeviceDraft("edge-1", "192.0.2.3"))
    engine.dispose()


@pytest.fixture(params=["sqlite", "postgresql"])
def inventory(
    request: pytest.FixtureRequest, home: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """The same names in the file of a home and on a PostgreSQL server."""
    home.mkdir()
    url = f"sqlite:///{home / 'poller.db'}"
    if request.param == "postgresql":
        url = str(request.getfixturevalue("fresh_postgres_url"))
        monkeypatch.setenv("POLLER_DATABASE_URL", url)
    fill(url)
    # Machines that run tests are busy: how long is too long has a test of its own.
    monkeypatch.setattr(completion, "WITHIN_S", 10.0)
    yield
    bootstrap.services.cache_clear()


@pytest.mark.usefixtures("inventory")
def test_names_begin_as_typed() -> None:
    """Devices, sites and credentials match; `%` and `_` are ordinary letters."""
    assert completion.devices("core") == ["core-1", "core_2%"]
    assert completion.devices("core_") == ["core_2%"]
    assert completion.devices("") == ["core-1", "core_2%", "edge-1"]
    assert completion.sites("a") == ["ams"]
    assert completion.credentials("") == ["snmp-ro"]
    assert completion.devices("nobody") == []


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("poller device show co", ["core-1", "core_2%"]),
        ("poller device rm core-1 e", ["edge-1"]),
        ("poller devices edit core-1 --site ", ["ams", "fra"]),
        ("poller device add co", []),
        ("poller target list ed", ["edge-1"]),
        ("poller target edit core-1 s", ["slow", "snmp"]),
        ("poller target add edge-1 --collector s", ["snmp"]),
        ("poller poll core-1 --target ", ["slow", "snmp"]),
        ("poller readings co", ["core-1", "core_2%"]),
        ("poller credential rotate ", ["snmp-ro"]),
        ("poller device edit core-1 --credential s", ["snmp-ro"]),
        ("poller site edit f", ["fra"]),
        ("poller collect r", ["routeros"]),
    ],
)
def test_every_command_that_takes_a_name_offers_names(
    tab: Tab, home: Path, line: str, expected: list[str]
) -> None:
    """A command that makes a new thing offers no name."""
    home.mkdir()
    fill(f"sqlite:///{home / 'poller.db'}")
    assert tab(line) == expected


def test_without_a_database_completion_is_silent_and_writes_nothing(
    tab: Tab, home: Path, tmp_path: Path
) -> None:
    """An empty directory stays empty; wrong settings print nothing."""
    assert tab("poller device show ") == []
    assert not home.exists()
    assert tab("poller device show ", POLLER_NONSENSE="1") == []
    assert tab("poller device show ", POLLER_DATABASE_URL="mysql://x/y") == []
    (tmp_path / "poller.db").write_bytes(
        b"not a database at all, and long enough to be looked at" * 100
    )
    assert tab("poller device show ", POLLER_DATABASE_URL=f"sqlite:///{tmp_path}/poller.db") == []


def test_a_server_that_does_not_answer_is_not_waited_for(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The prompt comes back after 200 ms."""
    import psycopg

    assert psycopg.__version__  # imported before the clock runs
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        monkeypatch.setenv("POLLER_DATABASE_URL", f"postgresql://u:hunter22@127.0.0.1:{port}/db")
        began = time.monotonic()
        assert completion.devices("") == []
        assert time.monotonic() - began < 1.0
