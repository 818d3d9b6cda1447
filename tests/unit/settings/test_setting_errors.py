"""Errors of bad values name the setting, its source and what it takes."""

from __future__ import annotations

import pytest

from poller import errors, settings


@pytest.mark.parametrize(
    ("name", "value"),
    [("POLLER_BATCH_SIZE", "abc"), ("POLLER_BATCH_SIZE", "0"), ("POLLER_LOG_LEVEL", "LOUD")],
)
def test_a_bad_value_is_an_error_that_names_the_field(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    """A bad value never becomes the default."""
    monkeypatch.setenv(name, value)
    with pytest.raises(errors.InvalidSetting, match=name):
        settings.load()


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        (
            "batch_size",
            "batch_size takes a whole number from 1 to 1000, such as 64. Targets per batch",
        ),
        ("web_port", "web_port takes a whole number from 0 to 65535. Port of the page."),
        ("site_share", "site_share takes a number above 0 to 1, such as 0.6. A site"),
        ("runs_days", "runs_days takes a number above 0 to 3650, such as 30.0. How long"),
        ("leader_election", "leader_election takes true or false. False:"),
        ("log_level", "log_level takes DEBUG or INFO or WARNING or ERROR. Lowest"),
        ("sentry_dsn", "sentry_dsn: Sentry project"),
    ],
)
def test_the_hint_says_what_a_setting_takes(
    monkeypatch: pytest.MonkeyPatch, name: str, hint: str
) -> None:
    """The hint has type, bounds, an example and the description."""
    monkeypatch.setenv(f"POLLER_{name.upper()}", "many")
    with pytest.raises(errors.InvalidSetting) as caught:
        settings.load()
    assert caught.value.hint.startswith(hint)
