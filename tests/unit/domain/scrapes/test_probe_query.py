"""Parameters of `/probe`."""

from __future__ import annotations

import pytest

from poller import errors
from poller.domain.inventory.host_port import HostPort
from poller.domain.scrapes import probe_query


def test_a_url_becomes_options_without_its_host() -> None:
    """The poll goes to the address that was checked, whatever the name resolves to later."""
    found = probe_query.parse_probe([("target", "https://web1.example:8443/a?b=c")])
    assert found.host == HostPort("web1.example", 8443)
    assert found.collector == "http"
    assert found.options == {
        "expect": "200-299",
        "scheme": "https",
        "path": "/a?b=c",
        "port": 8443,
    }
    assert not found.is_plain


def test_a_port_is_an_option_of_a_connection() -> None:
    """tcp_connect is a ping by TCP."""
    found = probe_query.parse_probe([("target", "sw1:22"), ("module", "tcp_connect")])
    assert found.options == {"method": "tcp", "count": 1, "port": 22}


@pytest.mark.parametrize(
    ("target", "module", "text"),
    [
        ("", "icmp", "Target parameter is missing"),
        ("sw1", "dns", 'Unknown module "dns"'),
        ("sw1", "tcp_connect", "needs a target with a port"),
        ("sw1:7", "icmp", "takes a target without a port"),
        ("ftp://sw1/", "http_2xx", "not a URL of http or https"),
        ("http://me:word@sw1/", "http_2xx", "has a login"),
        ("http://sw1:99999/", "http_2xx", "is not a URL"),
    ],
)
def test_a_wrong_probe_is_refused(target: str, module: str, text: str) -> None:
    """A login in an address would be kept in logs."""
    with pytest.raises(errors.InvalidInput, match=text):
        probe_query.parse_probe([("target", target), ("module", module)])
