"""Receivers, routes and the dead man's switch in the settings: checked, and without secrets."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from poller import errors
from poller.bootstrap import Services
from poller.settings import load, setting_table

TOML = """
[receiver.mail]
kind = "email"
host = "mail.example.net"
password_file = "secrets/mail"
[route.all]
receivers = ["mail"]
where = "site:fra"
"""
URL = "https://hc.example.net/ping/s3cret-uuid"


def test_receivers_and_routes_are_read_from_poller_toml() -> None:
    """A file that a receiver names is beside the poller.toml."""
    Path("poller.toml").write_text(TOML)
    settings = load()
    assert settings.receiver["mail"]["password_file"] == str(Path.cwd() / "secrets/mail")
    assert settings.route["all"]["where"] == "site:fra"


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("RECEIVER", "{", "receiver (from environment POLLER_RECEIVER): it is not JSON"),
        ("RECEIVER", '{"a b": {}}', '"a b" cannot be the name of a receiver'),
        ("RECEIVER", '{"a": {"kind": 5}}', "[receiver.a] kind: it is the name of a receiver"),
        ("RECEIVER", '{"a": {"password": "x"}}', "name it as password_file"),
        ("RECEIVER", '{"a": {"url": "https://u:s3cret@h/"}}', "a URL with a password"),
        ("RECEIVER", '{"a": {"kind": "apprise", "urls": ["slack://s3cret/b"]}}', "urls_file"),
        ("RECEIVER", '{"apprise": {"url": "https://hooks.example/s3cret"}}', "urls_file"),
        ("RECEIVER", '{"a": {"routing_key": "s3cret"}}', "name it as routing_key_file"),
        ("ROUTE", '{"a/b": {}}', '"a/b" cannot be the name of a route'),
        ("ROUTE", '{"r": {"receivers": ["x"]}}', '[route.r] receivers: there is no receiver "x"'),
        ("HEARTBEAT_URL", "s3cret", "it is no URL that begins with http"),
        ("HEARTBEAT_URL", "https://u:s3cret@h/", "no user and password in this URL"),
    ],
)
def test_a_wrong_value_is_named(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, text: str
) -> None:
    """The error names the table and the option, and never a secret."""
    monkeypatch.setenv(f"POLLER_{name}", value)
    with pytest.raises(errors.InvalidSetting) as raised:
        load()
    assert text in raised.value.message
    assert "s3cret" not in f"{raised.value} {raised.value.hint}"


def test_the_url_of_the_dead_mans_switch_is_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """It can come from a file; settings show its host, and logs nothing of its path."""
    Path("url").write_text(f"{URL}\n")
    monkeypatch.setenv("POLLER_HEARTBEAT_URL_FILE", "url")
    settings = load()
    assert settings.heartbeat_url is not None
    assert settings.heartbeat_url.get_secret_value() == URL
    shown = {row.name: row.value for row in setting_table.rows(settings, os.environ)}
    assert shown["heartbeat_url"] == "https://hc.example.net/********"
    assert "s3cret" not in Services(settings).redactor.text(f"could not reach {URL}")
