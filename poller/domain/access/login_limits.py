"""How many log-ins may fail before the next one has to wait."""

from __future__ import annotations

import ipaddress
from typing import NamedTuple


class Limit(NamedTuple):
    """At most `failures` within `window_s`, counted from the first of them."""

    failures: int
    window_s: int


class Counted(NamedTuple):
    """One subject after an attempt was counted."""

    attempts: int  # in this window, with this one
    wait_s: int  # before the next attempt; 0: it may go on

    def is_telling(self, limit: Limit) -> bool:
        """Whether a failure now is worth a row: the first of a window, and the last allowed one."""
        return self.attempts in (1, limit.failures)


#: Of one address, whatever the user. IPv6 addresses of one /64 count as one.
OF_ADDRESS = Limit(20, 300)
#: Of one user, whatever the address.
OF_USER = Limit(10, 300)


def counted_address(text: str) -> str:
    """Return what counts as one address: all of IPv4, the first 64 bits of IPv6."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return text
    mapped = getattr(address, "ipv4_mapped", None)
    if address.version == 4 or mapped:
        return str(mapped or address)
    return str(ipaddress.ip_network((address, 64), strict=False).network_address)
