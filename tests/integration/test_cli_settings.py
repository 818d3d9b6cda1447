"""Settings and unexpected errors as every command shows them."""

from __future__ import annotations

import pytest

from poller.db.inventory import devices
from tests.integration.commands import Cli, ok


def test_settings_show_the_origin_of_values_and_hide_secrets(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Origins are environment and default; passwords are masked."""
    monkeypatch.setenv("POLLER_DATABASE_URL", "postgresql://u:hunter22@h/db")
    monkeypatch.setenv("POLLER_BATCH_SIZE", "32")
    result = ok(cli("settings", "--json"))
    items = {item["name"]: item for item in result.json["items"]}
    assert items["batch_size"]["value"] == "32"
    assert "POLLER_BATCH_SIZE" in items["batch_size"]["origin"]
    assert items["tick_s"]["origin"] == "default"
    assert "hunter22" not in result.out
    assert "@h/db" in items["database_url"]["value"]


def test_a_bad_setting_is_refused_by_every_command(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exit code is 2, and the error names the variable."""
    monkeypatch.setenv("POLLER_BATCH_SIZ", "32")
    refused = cli("device", "list")
    assert refused.code == 2
    assert "POLLER_BATCH_SIZ" in refused.err
    assert "POLLER_BATCH_SIZE" in refused.err


def test_an_unexpected_error_is_one_sentence(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """With --verbose a traceback is printed, too."""

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("no luck with redis://u:hunter22@h")

    ok(cli("db", "upgrade"))
    monkeypatch.setattr(devices, "listing", broken)
    result = cli("device", "list")
    assert result.code == 1
    assert result.err.splitlines()[-2].startswith(
        "error[P000]: unexpected RuntimeError: no luck with"
    )
    assert "Traceback" not in result.err
    assert "hunter22" not in result.err
    assert "Traceback" in cli("--verbose", "device", "list").err
