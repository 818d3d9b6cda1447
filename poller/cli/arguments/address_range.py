"""Address ranges on the command line: a prefix stands for all its addresses."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import NamedTuple

from poller import errors
from poller.domain.inventory import host_port, naming

#: Addresses of one range. A larger range is refused: a scan must end in minutes.
MAX_ADDRESSES = 4096
_EXAMPLES = {4: "192.0.2.0/24", 6: "2001:db8::/120"}


class Addresses(NamedTuple):
    """The addresses to scan, and the port that was given with a single one."""

    hosts: Sequence[str]
    port: int | None = None


def is_range(text: str) -> bool:
    return "/" in text


def expand(text: str) -> Addresses:
    """The host addresses of a prefix; an address or a host name itself. Raises InvalidInput.

    The network and the broadcast address of an IPv4 prefix are left out.
    """
    if not is_range(text):
        host, port = host_port.parse(text)
        return Addresses([host], port)

    network = _network(text)
    count = network.num_addresses
    if count > MAX_ADDRESSES:
        longest = network.max_prefixlen - MAX_ADDRESSES.bit_length() + 1
        raise errors.InvalidInput(
            f"{text} has {count:,} addresses, and at most {MAX_ADDRESSES:,} are scanned",
            hint=f"scan it in parts, such as {network.network_address}/{longest}",
        )
    return Addresses([str(address) for address in network.hosts()])


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        pass
    shown = naming.printable(text)
    try:
        whole = ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise errors.InvalidInput(
            f'"{shown}" is not an address range',
            hint=f"for example {' or '.join(_EXAMPLES.values())}",
        ) from None
    raise errors.InvalidInput(
        f'"{shown}" is an address within a range', hint=f"the whole range is {whole}"
    )
