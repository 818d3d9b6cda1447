"""The names under which the page and Flower answer."""

from __future__ import annotations

import pytest

from poller.security import allowed_hosts
from poller.security.allowed_hosts import AllowedHosts

HOSTS = AllowedHosts(["Poller.Example", "web"], ["https://proxy.example/poller/", ""])


@pytest.mark.parametrize(
    "header",
    [
        "127.0.0.1",
        "192.0.2.7:8080",
        "[2001:db8::1]:8080",
        "[::1]",
        "localhost:8080",
        "poller.example",
        "POLLER.example.:443",
        "web:8080",
        "proxy.example",
        "",  # HTTP/1.0
    ],
)
def test_own_names_and_addresses_are_allowed(header: str) -> None:
    """Names are compared without case, port and final dot; addresses cannot be rebound."""
    assert HOSTS.allows(header)


@pytest.mark.parametrize(
    "header",
    ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "[evil", "poller", " "],
)
def test_other_names_are_refused(header: str) -> None:
    """A part of a name is another name."""
    assert not HOSTS.allows(header)


def test_a_refusal_shows_no_control_character() -> None:
    """The text may be read in a terminal."""
    assert "\x1b" not in allowed_hosts.refusal("a\x1b[31m.example", "POLLER_WEB_HOSTS")
