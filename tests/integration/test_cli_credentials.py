"""Credentials from the command line: never printed, never lost, and rotated everywhere."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from poller import bootstrap
from poller.db import engine as sql
from poller.db.inventory import credential_rows, inventory_feed, targets
from poller.workers import lifecycle
from tests.integration.commands import Cli, ok


def test_a_credential_in_use_cannot_be_removed(cli: Cli) -> None:
    """The error names the devices and targets that use it."""
    ok(cli("credential", "add", "public", "--kind", "community", stdin="x-secret"))
    ok(cli("device", "add", "sw1", "192.0.2.1", "--credential", "public"))
    refused = cli("credential", "rm", "public", "--yes")
    assert refused.code == 2
    assert "by sw1" in refused.err


def test_a_collector_does_not_take_any_kind_of_credential(cli: Cli) -> None:
    """SNMP refuses a RouterOS login when the command is typed."""
    ok(cli("credential", "add", "ros", "--kind", "login", "--username", "admin", stdin="pw-secret"))
    refused = cli(
        "device", "add", "sw1", "192.0.2.1", "--collector", "snmp", "--credential", "ros", "--json"
    )
    assert 'cannot use credential "ros" of kind login' in refused.error["message"]
    ok(cli("device", "add", "sw1", "192.0.2.1", "--credential", "ros"))
    refused = cli("target", "add", "sw1", "--collector", "snmp", "--json")
    assert 'cannot use credential "ros"' in refused.error["message"]


@pytest.mark.parametrize(
    ("kind", "arguments", "stdin", "expected"),
    [
        ("community", [], "pub lic\n", {"community": "pub lic"}),
        ("token", [], "abc", {"token": "abc"}),
        ("login", ["--username", "u"], "p:w", {"username": "u", "password": "p:w"}),
        ("login", [], "u:p:w", {"username": "u", "password": "p:w"}),
        ("login", [], '{"username": "u", "password": "p"}', {"username": "u", "password": "p"}),
        ("login", ["--username", "u"], '{"password": "p"}', {"username": "u", "password": "p"}),
        (
            "snmpv3",
            ["--username", "u", "-f", "auth_protocol=SHA256"],
            "auth-pass\npriv-pass\n",
            {
                "username": "u",
                "auth_protocol": "SHA256",
                "auth_password": "auth-pass",
                "priv_password": "priv-pass",
            },
        ),
    ],
)
def test_secrets_are_read_from_stdin_in_every_kind(
    cli: Cli, home: Path, kind: str, arguments: list[str], stdin: str, expected: dict[str, str]
) -> None:
    """A worker decrypts the text that was piped."""
    ok(cli("credential", "add", "c", "--kind", kind, *arguments, stdin=stdin))
    stored = json.loads(_opened(home, "c"))
    assert stored["kind"] == kind
    assert expected.items() <= stored.items()


def _opened(home: Path, name: str) -> str:
    services = bootstrap.services()
    key = inventory_feed.credentials(services.engine, range(1, 50))
    [sealed] = [each for each in key.values() if each.name == name]
    return services.keyring.open(sealed.envelope, name, sealed.kind)


def test_a_secret_as_an_argument_is_refused_and_not_repeated(cli: Cli) -> None:
    """`ps` shows arguments to every user."""
    refused = cli(
        "credential", "add", "c", "--kind", "login", "-f", "password=hunter22", "--username", "u"
    )
    assert refused.code == 2
    assert '"password" is secret' in refused.err
    assert "hunter22" not in refused.err


def test_no_command_shows_a_secret_and_no_file_holds_one(cli: Cli, home: Path) -> None:
    """Neither lists nor exports nor the database file contain a secret."""
    ok(cli("credential", "add", "c", "--kind", "community", stdin="hunter22-secret"))
    ok(cli("device", "add", "sw1", "192.0.2.1", "--credential", "c"))
    shown = ""
    for command in (
        ["credential", "list"],
        ["credential", "list", "--json"],
        ["device", "export"],
        ["device", "show", "sw1"],
    ):
        result = ok(cli(*command))
        shown += result.out + result.err
    assert "hunter22" not in shown
    bootstrap.services().engine.dispose()
    assert not any(b"hunter22" in path.read_bytes() for path in home.rglob("*") if path.is_file())


def test_a_new_secret_reaches_the_targets_that_use_it(cli: Cli, home: Path) -> None:
    """The version of each target grows, so that workers drop their cached credential."""
    ok(cli("credential", "add", "c", "--kind", "community", stdin="first"))
    ok(cli("device", "add", "sw1", "192.0.2.1", "--credential", "c", "--collector", "snmp"))
    engine = sql.create(f"sqlite:///{home}/poller.db")
    before = targets.show(engine, "sw1", "snmp").version
    assert "used by 1 target" in ok(cli("credential", "rotate", "c", stdin="second")).out
    assert targets.show(engine, "sw1", "snmp").version > before
    assert json.loads(_opened(home, "c"))["community"] == "second"


def test_rotating_the_key_keeps_every_secret_readable(cli: Cli, home: Path) -> None:
    """Everything is sealed with the new key; the old key stays for backups."""
    for name in ("a", "b"):
        ok(cli("credential", "add", name, "--kind", "community", stdin=f"secret-{name}"))
    old = (home / "secret.key").read_text().split()
    done = ok(cli("credential", "rotate-key", "--json")).json
    assert (done["credentials"], done["key"]) == (2, f"{home}/secret.key")
    now = (home / "secret.key").read_text().split()
    assert (len(now), now[1:]) == (2, old)
    (home / "secret.key").write_text(now[0])
    bootstrap.services.cache_clear()
    assert json.loads(_opened(home, "b"))["community"] == "secret-b"


def test_rotating_a_key_of_the_environment_needs_the_new_one_first(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Poller cannot change the operator's environment; the hint says what to put there."""
    old, new = (base64.b64encode(bytes([n, 0]) * 16).decode() for n in (1, 2))
    monkeypatch.setenv("POLLER_SECRET_KEY", old)
    ok(cli("credential", "add", "a", "--kind", "community", stdin="secret-a"))
    refused = cli("credential", "rotate-key")
    assert refused.code == 2
    assert "POLLER_SECRET_KEY=NEW,OLD" in refused.err
    monkeypatch.setenv("POLLER_SECRET_KEY", f"{new},{old}")
    assert ok(cli("credential", "rotate-key", "--json")).json["credentials"] == 1
    monkeypatch.setenv("POLLER_SECRET_KEY", new)
    bootstrap.services.cache_clear()
    assert json.loads(_opened(Path(), "a"))["community"] == "secret-a"


def test_a_lost_key_says_which_one_is_needed(cli: Cli, home: Path) -> None:
    """The whole rotation is refused rather than losing a secret."""
    ok(cli("credential", "add", "a", "--kind", "community", stdin="secret-a"))
    (home / "secret.key").unlink()
    refused = cli("credential", "rotate-key")
    assert refused.code == 2
    assert 'credential "a" needs key' in refused.err
    assert "present:" in refused.err


def test_a_short_secret_is_noted(cli: Cli) -> None:
    """It is stored all the same: a device may allow no longer one."""
    done = ok(cli("credential", "add", "a", "--kind", "community", stdin="public7"))
    assert "warning: this secret has fewer than 8 characters" in done.err
    done = ok(cli("credential", "rotate", "a", stdin="public78"))
    assert "warning" not in done.err


def test_rotating_the_key_renews_old_envelopes(cli: Cli, home: Path) -> None:
    """An envelope of version 1 opens until then, also when it has the first key already."""
    ok(cli("credential", "add", "core", "--kind", "community", stdin="unused-secret"))
    key = base64.b64encode(bytes(range(32))).decode()
    (home / "secret.key").write_text(key)
    old = (
        "v1:1100a4c5:uH57stKmuko+VDOK8YNpAiTCi3jwYgu85NIxcFnP/+wl85B+XebaRllxi7GXb5+GO1+GiY2gGT3S"
        "dP1f8T5mDA1zlJaHuhUT"
    )
    bootstrap.services.cache_clear()
    engine = bootstrap.services().engine
    credential_rows.reseal(engine, lambda *_: old)
    assert json.loads(_opened(home, "core"))["community"] == "public"

    ok(cli("credential", "rotate-key"))
    [envelope] = credential_rows.envelopes(engine)
    assert envelope.startswith("v2:")
    bootstrap.services.cache_clear()
    assert json.loads(_opened(home, "core"))["community"] == "public"


def test_a_wrong_key_is_noted_by_the_list(
    cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list needs no key and is complete; without a file it makes no new key."""
    ok(cli("credential", "add", "core", "--kind", "community", stdin="public-read-only\n"))
    assert "warning" not in ok(cli("credential", "list")).err
    monkeypatch.setenv("POLLER_SECRET_KEY", base64.b64encode(os.urandom(32)).decode())
    listed = ok(cli("credential", "list"))
    assert "core" in listed.out
    assert "warning: 1 of 1 stored credentials need another secret key" in listed.err
    assert "POLLER_SECRET_KEY=NEW,OLD" in listed.err
    monkeypatch.delenv("POLLER_SECRET_KEY")
    (home / "secret.key").unlink()
    assert "there is none here" in ok(cli("credential", "list", "--json")).err
    assert not (home / "secret.key").exists()


def test_a_worker_with_a_wrong_key_says_so_at_its_start(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once, and not only in the polls that fail."""
    ok(cli("credential", "add", "core", "--kind", "community", stdin="public-read-only\n"))
    services = bootstrap.services()
    with capture_logs() as lines:
        lifecycle._log_key_problem(services)
    assert lines == []
    monkeypatch.setenv("POLLER_SECRET_KEY", base64.b64encode(os.urandom(32)).decode())
    bootstrap.services.cache_clear()
    with capture_logs() as lines:
        lifecycle._log_key_problem(bootstrap.services())
    [line] = lines
    assert (line["event"], line["log_level"]) == ("secret_key_wrong", "error")


def test_a_field_that_is_not_secret_is_changed_alone(cli: Cli) -> None:
    """The stored secrets stay; a secret is no argument."""
    arguments = ("--kind", "snmpv3", "--username", "old")
    ok(cli("credential", "add", "v3", *arguments, stdin="auth-secret\npriv-secret"))
    ok(cli("credential", "edit", "v3", "--username", "new", "-f", "auth_protocol=SHA256"))
    services = bootstrap.services()
    key = credential_rows.show(services.engine, "v3").id
    sealed = inventory_feed.credential(services.engine, key)
    assert sealed is not None
    found = json.loads(services.keyring.open(sealed.envelope, sealed.name, sealed.kind))
    assert (found["username"], found["auth_protocol"]) == ("new", "SHA256")
    assert (found["auth_password"], found["priv_password"]) == ("auth-secret", "priv-secret")
    refused = cli("credential", "edit", "v3", "-f", "auth_password=x")
    assert "must not be an argument" in refused.err
    assert "no field was given" in cli("credential", "edit", "v3").err
