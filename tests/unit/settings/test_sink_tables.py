"""Tables of sinks: read from poller.toml or the environment, and never with a secret in them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from poller import errors
from poller.settings import load, setting_table, sink_tables

TOML = """
sinks = ["sql", "prom"]
[sink.prom]
kind = "remote_write"
url = "http://127.0.0.1:9090/api/v1/write"
password_file = "secrets/prom"
[sink.influx]
tags = {site = "ams"}
"""


def in_file(text: str) -> None:
    Path("poller.toml").write_text(text)


def test_tables_are_read_from_poller_toml() -> None:
    """A table of a sink that is not in use is read, too."""
    in_file(TOML)
    assert load().sinks == ("sql", "prom")
    assert load().sink["prom"]["kind"] == "remote_write"
    assert load().sink["influx"] == {"tags": {"site": "ams"}}


def test_the_environment_replaces_all_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with every setting, the strongest source counts alone."""
    in_file(TOML)
    monkeypatch.setenv("POLLER_SINK", '{"other": {"kind": "stream"}}')
    assert load().sink == {"other": {"kind": "stream"}}


def test_files_of_a_table_are_beside_the_poller_toml_that_names_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A command in a subdirectory finds the same file as one beside poller.toml."""
    in_file(TOML)
    above = Path.cwd()
    (above / "below").mkdir()
    monkeypatch.chdir("below")
    assert load().sink["prom"]["password_file"] == str(above / "secrets" / "prom")


def test_files_are_beside_a_poller_toml_wherever_it_was_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The working directory and POLLER_CONFIG make no difference; header_files are files, too."""
    text = TOML + "[sink.prom.header_files]\nX-Key = 'secrets/key'\n"
    in_file(text)
    assert load().sink["prom"]["password_file"] == str(Path.cwd() / "secrets" / "prom")
    (tmp_path / "other.toml").write_text(text)
    monkeypatch.setenv("POLLER_CONFIG", str(tmp_path / "other.toml"))
    assert load().sink["prom"]["header_files"] == {"X-Key": str(tmp_path / "secrets" / "key")}


@pytest.mark.parametrize("start", ["", 'sinks = ["sql", "prom"]\n'])
def test_a_table_sinks_is_told_from_the_list_sinks(start: str) -> None:
    """The error says how the table of a sink is written."""
    in_file(start + "[sinks.prom]\nkind = 'stream'")
    with pytest.raises(errors.InvalidSetting) as caught:
        load()
    assert "[sink.NAME]" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[sink.prom]\npassword = 'hunter2'", "[sink.prom] password: write the secret to a file"),
        ("[sink.prom.headers]\nAuthorization = 'Basic hunter2'", "header_files = {Authorization ="),
        ("[sink.prom.headers]\nX-Auth = 'hunter2'", "header_files = {X-Auth ="),
        ("[sink.prom]\nheaders = ['X-Auth: hunter2']", "[sink.prom] headers: it is a table"),
        ("[sink.prom]\nurl = 'http://host/?sig=hunter2'", "[sink.prom] url: a URL with"),
        ("[sink.prom]\nurl = 'http://host/#access_token=hunter2'", "[sink.prom] url: a URL with"),
        ("[[sink.prom.servers]]\ntoken = 'hunter2'", "[sink.prom] token: write the secret"),
        ("[sink.prom]\nurl = 'http://me:hunter2@host/'", "[sink.prom] url: a URL with a password"),
        ("[sink.nats]\nservers = ['nats://me:hunter2@host']", "[sink.nats] servers: a URL with"),
        ("[sink.prom]\nurl = 'http://host/?api_key=hunter2'", "[sink.prom] url: a URL with"),
        ("[sink.'../etc']\nurl = ''", '"../etc" cannot be the name of a sink'),
        ("[sink.prom]\nkind = 7", "[sink.prom] kind: it is the name of a sink"),
        ("[sink]\nprom = 7", "sink (from"),
    ],
)
def test_a_bad_table_is_refused_without_its_secret(text: str, problem: str) -> None:
    """`poller settings`, logs and errors show settings."""
    in_file(text)
    with pytest.raises(errors.InvalidSetting) as caught:
        load()
    assert problem in str(caught.value)
    assert "hunter2" not in f"{caught.value} {caught.value.hint}"


def test_a_table_of_files_may_name_secrets() -> None:
    """The value of a secret header is in a file, and the name of the header is no secret."""
    in_file("[sink.prom.header_files]\nX-Api-Key = '/run/secrets/key'")
    assert load().sink["prom"]["header_files"] == {"X-Api-Key": "/run/secrets/key"}


def test_names_that_only_look_like_those_of_secrets_may_be_given() -> None:
    """Files, headers of tenants and parameters of a search are no secrets."""
    options = {
        "key_file": "/tls.key",
        "sasl_mechanism": "PLAIN",
        "url": "http://host/w?org=ops&keys=1#top",
        "headers": {"X-Scope-OrgID": "ops", "X-Author": "poller"},
    }
    sink_tables.check({"prom": options})


def test_a_variable_that_is_no_json_is_refused_with_an_example(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The form of the variable cannot be guessed."""
    monkeypatch.setenv("POLLER_SINK", "prom=http://host")
    with pytest.raises(errors.InvalidSetting, match=r'it is not JSON .*; such as \{"prom"'):
        load()


def test_tables_are_shown_as_json() -> None:
    """`poller settings` has one line for each setting."""
    in_file(TOML)
    shown = {row.name: row.value for row in setting_table.rows(load(), os.environ)}
    assert shown["sink"].startswith('{"prom": {"kind": "remote_write"')
