"""Users, tokens and the audit log from the command line."""

from __future__ import annotations

import json

import pytest

from poller import bootstrap
from poller.db.access import token_rows, user_rows
from poller.security import passwords, token_values
from tests.integration.commands import Cli, ok

PASSWORD = "correct horse battery staple"


def test_a_user_is_added_listed_changed_and_removed(cli: Cli) -> None:
    """The password comes from stdin, and is printed nowhere."""
    added = ok(cli("user", "add", "kim", "--role", "admin", stdin=f"{PASSWORD}\n"))
    assert added.out == "added user kim (admin)\n"
    assert "from the first user on, the page and the API ask for a login" in added.err
    assert "Flower stays open at 127.0.0.1" in added.err
    [listed] = json.loads(ok(cli("user", "list", "--json")).out)["items"]
    assert (listed["name"], listed["role"], listed["enabled"]) == ("kim", "admin", True)
    stored = user_rows.password_hash(bootstrap.services().engine, "kim")
    assert passwords.matches(stored, PASSWORD)

    assert "Flower" not in ok(cli("user", "add", "lee", stdin=PASSWORD)).err
    ok(cli("user", "edit", "lee", "--role", "operator", "--disable"))
    assert cli("user", "edit", "lee").code == 2
    assert cli("user", "edit", "leo", "--password", stdin=PASSWORD).code == 3
    ok(cli("user", "edit", "lee", "--password", "--enable", stdin="another long password"))
    assert cli("user", "rm", "lee").code == 2  # not confirmed
    ok(cli("user", "rm", "lee", "--yes"))
    rows = json.loads(ok(cli("audit", "--subject", "lee", "--json")).out)["items"]
    assert [row["action"] for row in rows] == ["user.remove", "user.edit", "user.edit", "user.add"]
    assert rows[2]["after"] == {"role": "operator", "enabled": False}
    assert (rows[0]["kind"], bool(rows[0]["actor"]), bool(rows[0]["address"])) == (
        "cli",
        True,
        True,
    )
    assert "password" not in json.dumps([rows[0], rows[2], rows[3]])
    printed = ok(cli("audit", "--action", "user.edit", "--limit", "1")).out
    assert "password_changed: yes" in printed
    assert "hash" not in printed


@pytest.mark.parametrize("stdin", ["", "short", f"{PASSWORD}\nsecond line"])
def test_a_bad_password_adds_no_user(cli: Cli, stdin: str) -> None:
    """The error says what is wrong, without the password."""
    refused = cli("user", "add", "kim", "--json", stdin=stdin)
    assert refused.code == 2
    assert not stdin or stdin.splitlines()[0] not in refused.err
    assert json.loads(ok(cli("user", "list", "--json")).out)["items"] == []


def test_a_name_that_is_taken_is_told_before_the_password_is_asked(cli: Cli) -> None:
    """`--if-missing` makes the command safe to repeat."""
    ok(cli("user", "add", "kim", stdin=PASSWORD))
    taken = cli("user", "add", "kim", "--json", stdin=PASSWORD)
    assert taken.error["code"] == "P102"
    ok(cli("user", "add", "kim", "--if-missing", stdin="a password that is not used"))
    stored = user_rows.password_hash(bootstrap.services().engine, "kim")
    assert passwords.matches(stored, PASSWORD)


def test_the_last_admin_stays_while_there_are_other_users(cli: Cli) -> None:
    """On loopback the very last user may go: then no login is asked for."""
    ok(cli("user", "add", "kim", "--role", "admin", stdin=PASSWORD))
    ok(cli("user", "add", "lee", stdin=PASSWORD))
    for command in (["rm", "kim", "--yes"], ["edit", "kim", "--disable"]):
        refused = cli("user", *command, "--json")
        assert "last enabled user with the role admin" in refused.error["message"]
    ok(cli("user", "rm", "lee", "--yes"))
    ok(cli("user", "rm", "kim", "--yes"))


def test_the_last_admin_of_a_page_on_a_network_stays(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody could log in afterwards."""
    ok(cli("user", "add", "kim", "--role", "admin", stdin=PASSWORD))
    monkeypatch.setenv("POLLER_WEB_BIND", "0.0.0.0")
    assert cli("user", "rm", "kim", "--yes").code == 2


def test_a_token_is_printed_once(cli: Cli) -> None:
    """Only its hash is stored; lists show scopes, site and end."""
    made = ok(cli("token", "add", "ci", "--scope", "read", "--scope", "operate"))
    value = made.out.strip()
    assert token_values.is_value(value)
    assert value not in made.err
    engine = bootstrap.services().engine
    assert token_rows.valid(engine, token_values.digest(value))
    as_json = ok(cli("token", "add", "x", "--scope", "scrape", "--expires", "90d", "--json"))
    document = json.loads(as_json.out)
    assert document["token"].startswith("poller_")
    assert document["expires_at"]
    listed = ok(cli("token", "list", "--json")).out
    assert value not in listed
    assert [item["name"] for item in json.loads(listed)["items"]] == ["ci", "x"]
    ok(cli("token", "rm", "ci", "--yes"))
    assert token_rows.valid(engine, token_values.digest(value)) is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--scope", "write"], 'no scope "write"'),
        (["--scope", "read", "--site", "ams"], 'no site named "ams"'),
        (["--scope", "read", "--expires", "soon"], "--expires"),
        (["--scope", "admin", "--site", "ams"], "cannot be limited to a site"),
    ],
)
def test_a_token_that_makes_no_sense_is_refused(cli: Cli, arguments: list[str], words: str) -> None:
    """The error names the option."""
    refused = cli("token", "add", "ci", *arguments, "--json")
    assert words in refused.error["message"]


def test_a_stored_credential_that_a_person_uses_is_in_the_audit_log(cli: Cli) -> None:
    """`collect` and `discover` open it for a person: who, from where, and what for."""
    ok(cli("credential", "add", "ro", "--kind", "community", stdin="s3cret-community"))
    cli("collect", "snmp", "127.0.0.1", "--credential", "ro", "-o", "port=9", "--timeout", "1s")
    rows = json.loads(ok(cli("audit", "--action", "credential.open", "--json")).out)["items"]
    assert [(row["subject"], row["after"]) for row in rows] == [
        ("ro", {"for": "collect snmp 127.0.0.1"})
    ]
    assert "s3cret-community" not in json.dumps(rows)
    wrong = cli("collect", "routeros", "127.0.0.1", "--credential", "ro", "--json")
    assert 'cannot use credential "ro" of kind community' in wrong.error["message"]
