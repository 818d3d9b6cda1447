"""The page and Flower are not opened to a network by mistake."""

from __future__ import annotations

import pytest

from poller import errors
from poller.security import network_exposure


@pytest.mark.parametrize("bind", ["127.0.0.1", "127.8.9.10", "::1", "localhost"])
def test_loopback_needs_no_permission(bind: str) -> None:
    """Only this machine reaches it."""
    network_exposure.check_page(bind, insecure=False)
    network_exposure.check_flower(bind, has_login=False)


@pytest.mark.parametrize("bind", ["0.0.0.0", "::", "192.0.2.1", "poller.example", ""])
def test_other_addresses_need_permission_or_a_login(bind: str) -> None:
    """The error names the setting, the address and the way out."""
    with pytest.raises(errors.InvalidSetting, match=f"web_bind: {bind}") as refused:
        network_exposure.check_page(bind, insecure=False)
    assert "POLLER_WEB_INSECURE=true" in refused.value.hint
    with pytest.raises(errors.InvalidSetting, match="Flower has no password"):
        network_exposure.check_flower(bind, has_login=False)

    network_exposure.check_page(bind, insecure=True)
    network_exposure.check_flower(bind, has_login=True)
