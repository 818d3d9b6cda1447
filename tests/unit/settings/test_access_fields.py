"""Settings of log-ins that would open the page are refused when they are read."""

from __future__ import annotations

import pytest

from poller import errors
from poller.settings import load

CLIENT = {"OIDC_CLIENT_ID": "poller", "OIDC_CLIENT_SECRET": "a secret"}


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"TRUSTED_PROXIES": "0.0.0.0/0"}, "every address"),
        ({"TRUSTED_PROXIES": "10.0.0.1,::/0"}, "every address"),
        ({"TRUSTED_PROXIES": "proxy.example"}, "neither an address nor a network"),
        ({"PROXY_USER_HEADER": "X-Forwarded-User"}, "it needs trusted_proxies"),
        ({"GROUP_ROLES": "noc=root"}, "not of the form group=role"),
        ({"OIDC_ISSUER": "http://login.example.net", **CLIENT}, "https://"),
        ({"OIDC_ISSUER": "http://localhost.evil.example", **CLIENT}, "https://"),
        ({"OIDC_ISSUER": "https://login.example.net"}, "needs oidc_client_id"),
        ({"OIDC_ISSUER": "https://login.example.net", "OIDC_CLIENT_ID": "x"}, "needs oidc_client"),
        ({"SESSION_HOURS": "0"}, "greater than 0"),
    ],
)
def test_a_dangerous_setting_is_refused(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], words: str
) -> None:
    """The error names the setting and the reason, and no secret."""
    for name, value in variables.items():
        monkeypatch.setenv(f"POLLER_{name}", value)
    with pytest.raises(errors.InvalidSetting) as refused:
        load()
    assert words in str(refused.value)
    assert "a secret" not in str(refused.value) + refused.value.hint


def test_right_settings_are_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three settings are enough for OpenID Connect, and two for a proxy."""
    right = {
        "OIDC_ISSUER": "https://login.example.net",
        **CLIENT,
        "TRUSTED_PROXIES": "10.0.0.1, 2001:db8::/64",
        "PROXY_USER_HEADER": "X-Forwarded-User",
    }
    for name, value in right.items():
        monkeypatch.setenv(f"POLLER_{name}", value)
    settings = load()
    assert settings.trusted_proxies == ("10.0.0.1", "2001:db8::/64")
    assert "a secret" not in repr(settings)
