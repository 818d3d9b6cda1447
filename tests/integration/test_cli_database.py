"""The commands and their database: made by the first device, refused when it is wrong or away."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import redis

from poller import errors
from poller.db import engine as sql
from poller.db.inventory import devices
from tests.integration.commands import Cli, csv_lines, ok


def test_the_first_device_makes_the_database_and_says_so(cli: Cli, home: Path) -> None:
    """A private database needs no migration command."""
    first = ok(cli("device", "add", "sw1", "192.0.2.1"))
    assert f"created the database {home}/poller.db" in first.err
    assert "created" not in ok(cli("device", "add", "sw2", "192.0.2.2")).err


@pytest.mark.parametrize(
    "command",
    [
        "device list",
        "device show sw1",
        "device export --format csv",
        "target list",
        "credential list",
        "site list",
        "runs",
        "readings sw1",
        "deadletter list",
        "db current",
        "device rm sw1 --yes",
        "device edit sw1 --site x",
        "target add sw1 --collector snmp",
        "demo clear --yes",
    ],
)
def test_a_command_that_adds_no_device_creates_no_database(
    cli: Cli, home: Path, command: str
) -> None:
    """It says that there is none, and what makes one; not even the home is made."""
    refused = cli(*command.split())
    assert refused.code == 5, refused
    assert f"there is no database file {home}/poller.db" in refused.err
    assert "poller db upgrade" in refused.err
    assert not home.exists()


def test_a_database_that_was_deleted_or_replaced_is_not_used(cli: Cli, home: Path) -> None:
    """A process goes on neither with the deleted file nor with another one in its place."""
    ok(cli("device", "add", "sw1", "192.0.2.1"))
    path = home / "poller.db"
    engine = sql.create(f"sqlite:///{path}")
    assert devices.count(engine) == 1
    path.rename(home / "aside.db")
    with pytest.raises(errors.StoreUnavailable, match="was deleted under a running poller"):
        devices.count(engine)
    assert not path.exists()
    path.write_bytes((home / "aside.db").read_bytes())
    with pytest.raises(errors.StoreUnavailable, match="was replaced by another one"):
        devices.count(engine)
    (home / "aside.db").rename(path)
    assert devices.count(engine) == 1


def test_rows_in_a_file_that_vanishes_before_the_commit_are_not_called_stored(
    cli: Cli, home: Path
) -> None:
    """The writer learns of it, so that it keeps the rows."""
    ok(cli("device", "add", "sw1", "192.0.2.1"))
    engine = sql.create(f"sqlite:///{home}/poller.db")

    def write_and_unlink() -> None:
        with sql.writing(engine) as conn:
            conn.exec_driver_sql("UPDATE devices SET address = '192.0.2.2'")
            (home / "poller.db").unlink()

    with pytest.raises(errors.StoreUnavailable, match="was deleted"):
        write_and_unlink()


def test_a_configured_database_is_not_upgraded_unasked(
    cli: Cli, fresh_postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shared server is upgraded by an explicit command only."""
    monkeypatch.setenv("POLLER_DATABASE_URL", fresh_postgres_url)
    refused = cli("device", "list", "--json")
    assert (refused.code, refused.error["code"]) == (2, "P303")
    assert refused.error["try"] == "run: poller db upgrade"
    assert cli("db", "current").code == 1
    assert ok(cli("db", "upgrade", "--json")).json["before"] is None
    assert "already at revision" in ok(cli("db", "upgrade")).out
    ok(cli("db", "current"))
    ok(cli("device", "list"))


def test_a_database_at_a_newer_revision_is_refused(cli: Cli, home: Path) -> None:
    """The private database of a home is refused, too: nothing is downgraded."""
    ok(cli("db", "upgrade"))
    engine = sql.create(f"sqlite:///{home}/poller.db")
    with sql.writing(engine) as conn:
        conn.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    refused = cli("device", "list")
    assert refused.code == 2
    assert refused.err.startswith("error[P303]: the database is at revision 9999")


def test_a_database_that_is_away_is_exit_code_5(
    cli: Cli, free_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error does not show the password of the URL."""
    monkeypatch.setenv("POLLER_DATABASE_URL", f"postgresql://u:hunter22@127.0.0.1:{free_port}/db")
    away = cli("device", "list")
    assert away.code == 5
    assert "error[P301]" in away.err
    assert "hunter22" not in away.err


def test_the_same_commands_work_on_postgresql(
    cli: Cli, fresh_postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Add, import, export and remove work on the other backend."""
    monkeypatch.setenv("POLLER_DATABASE_URL", fresh_postgres_url)
    ok(cli("db", "upgrade"))
    ok(cli("credential", "add", "c", "--kind", "community", stdin="secret-c"))
    ok(
        cli(
            "device",
            "add",
            "one",
            "192.0.2.1",
            "--credential",
            "c",
            "--tag",
            "x",
            "--collector",
            "snmp",
        )
    )
    (tmp_path / "fleet.csv").write_text("\n".join(csv_lines(50)) + "\n")
    ok(cli("device", "import", "fleet.csv"))
    ok(cli("device", "export", "-o", "all.json"))
    ok(cli("device", "import", "all.json", "--update"))
    assert (
        len(ok(cli("device", "list", "--tag", "a", "--limit", "100", "--json")).json["items"]) == 50
    )
    assert "removed device one and 1 target" in ok(cli("device", "rm", "one", "--yes")).out
    ok(cli("credential", "rm", "c", "--yes"))
    engine = sql.create(fresh_postgres_url)
    assert devices.count(engine) == 50
    engine.dispose()


def test_sqlite_and_directories_belong_to_their_owner(cli: Cli, home: Path) -> None:
    """Other users cannot read the inventory of a network."""
    ok(cli("db", "upgrade"))
    assert os.stat(home).st_mode & 0o077 == 0


def test_a_refused_login_names_its_setting(
    cli: Cli,
    fresh_postgres_url: str,
    valkey_url: str,
    redis_client: redis.Redis,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """PostgreSQL and Redis run, so the hint is the setting with the login, never the password."""
    stranger = fresh_postgres_url.replace("postgres@", "stranger:hunter22@")
    monkeypatch.setenv("POLLER_DATABASE_URL", stranger)
    refused = cli("device", "list")
    assert refused.code == 5
    assert "login was refused" in refused.err
    assert "POLLER_DATABASE_URL" in refused.err

    redis_client.execute_command("ACL", "SETUSER", "guest", "on", ">right", "~*", "+@all")
    try:
        wrong = valkey_url.replace("redis://", "redis://guest:hunter22@")
        monkeypatch.setenv("POLLER_REDIS_URL", wrong)
        unread = cli("status")
    finally:
        redis_client.execute_command("ACL", "DELUSER", "guest")
    assert unread.code == 5
    assert "login was refused" in unread.err
    assert "POLLER_REDIS_URL" in unread.err
    assert "hunter22" not in refused.err + unread.err
