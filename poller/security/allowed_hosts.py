"""The names a browser may use for the page or for Flower, against DNS rebinding.

A foreign web site that lets its own name point to this machine reads the page with the browser of
one of its visitors. Its requests carry the foreign name in the Host header.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from urllib.parse import urlsplit

MISDIRECTED = 421
LOCAL_NAME = "localhost"


class AllowedHosts:
    """Host headers to answer: any IP address, localhost, the given names and hosts of URLs.

    An address cannot be rebound: the browser sends it only to a site that is that address.
    """

    def __init__(self, names: Iterable[str] = (), urls: Iterable[str] = ()) -> None:
        of_urls = (urlsplit(url).hostname or "" for url in urls)
        self.names = frozenset(_plain(name) for name in (LOCAL_NAME, *names, *of_urls) if name)

    def allows(self, header: str) -> bool:
        """Whether a request with this Host header is answered. HTTP/1.0 may send none."""
        if not header:
            return True
        host = host_of(header)
        return _is_address(host) or _plain(host) in self.names


def refusal(header: str, setting: str) -> str:
    """The text of the response to a foreign Host header."""
    host = host_of(header)[:100].encode("unicode_escape").decode()
    return f"{host} is not a name of this service. Add it to {setting} to use it.\n"


def host_of(header: str) -> str:
    """The host of a Host header, without the port and without the brackets of IPv6."""
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.partition(":")[0]


def _plain(name: str) -> str:
    """A name in the one form in which names are compared."""
    return name.strip().rstrip(".").lower()


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
