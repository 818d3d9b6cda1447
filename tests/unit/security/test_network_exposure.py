"""The page and Flower are not opened to a network by mistake."""

from __future__ import annotations

import pytest

from poller import errors
from poller.security import network_exposure


@pytest.mark.parametrize("bind", ["127.0.0.1", "127.8.9.10", "::1", "localhost"])
def test_loopback_needs_no_login(bind: str) -> None:
    """Only this machine reaches it."""
    network_exposure.check_page(bind, has_login=False)
    network_exposure.check_flower(bind, has_login=False)


@pytest.mark.parametrize("bind", ["0.0.0.0", "::", "192.0.2.1", "poller.example", ""])
def test_other_addresses_need_a_login(bind: str) -> None:
    """The error names the setting, the address and the way out."""
    shown = bind or "every address"
    with pytest.raises(errors.InvalidSetting, match=f"web_bind: {shown}") as refused:
        network_exposure.check_page(bind, has_login=False)
    assert "poller user add NAME --role admin" in refused.value.hint
    with pytest.raises(errors.InvalidSetting, match="Flower has no password"):
        network_exposure.check_flower(bind, has_login=False)

    network_exposure.check_page(bind, has_login=True)
    network_exposure.check_flower(bind, has_login=True)


def test_metrics_beyond_loopback_need_a_token_or_permission() -> None:
    """The error names the setting and the way out."""
    with pytest.raises(errors.InvalidSetting, match=r"metrics_bind: 0\.0\.0\.0") as refused:
        network_exposure.check_metrics("0.0.0.0", has_token=False, insecure=False)
    assert "POLLER_METRICS_TOKEN" in refused.value.hint
    network_exposure.check_metrics("0.0.0.0", has_token=True, insecure=False)
    network_exposure.check_metrics("0.0.0.0", has_token=False, insecure=True)
    network_exposure.check_metrics("127.0.0.1", has_token=False, insecure=False)
