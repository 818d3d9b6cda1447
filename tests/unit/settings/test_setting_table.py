"""The table of settings masks secrets."""

from __future__ import annotations

import os

import pytest

from poller import settings
from poller.settings import masking, setting_table

DSN = "https://0123456789abcdef@sentry.example/42"


def test_secrets_are_masked_when_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The host of a URL stays readable."""
    monkeypatch.setenv("POLLER_REDIS_URL", "redis://user:s3cret@cache:6379/0")
    monkeypatch.setenv("POLLER_SECRET_KEY", "s3cret-key")
    values = {row.name: row.value for row in setting_table.rows(settings.load(), os.environ)}
    assert values["redis_url"] == "redis://user:********@cache:6379/0"
    assert values["secret_key"] == "********"
    assert "s3cret" not in str(values)


def test_the_key_of_a_dsn_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The host of the DSN is shown; its key is masked and redacted."""
    monkeypatch.setenv("POLLER_SENTRY_DSN", DSN)
    loaded = settings.load()
    values = {row.name: row.value for row in setting_table.rows(loaded, os.environ)}
    assert values["sentry_dsn"] == "https://********@sentry.example/42"
    assert masking.secret_parts(DSN) == ["0123456789abcdef"]
    assert "0123456789abcdef" not in repr(loaded)
