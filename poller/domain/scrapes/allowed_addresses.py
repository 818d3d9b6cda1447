"""Which addresses outside the inventory a scrape may poll."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable


def is_allowed(address: str, networks: Iterable[str]) -> bool:
    """Whether an IP address is in one of the networks. An IPv4 address may be written as IPv6."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(parsed, "ipv4_mapped", None)
    wanted = mapped or parsed
    return any(wanted in ipaddress.ip_network(network) for network in networks)
