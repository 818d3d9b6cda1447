"""Where a request comes from. Headers about that are believed from trusted proxies only."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.types import Scope

from poller.web.access.access_policy import AccessPolicy

#: Headers by which a request shows that a proxy passed it on.
_MARKS = ("x-real-ip", "forwarded", "via")
_MARKED = "x-forwarded-"  # -for, -host, -proto, -user and others
_LONGEST_ADDRESS = 45


@dataclass(frozen=True, slots=True)
class RequestOrigin:
    """The client of a request, behind any trusted proxies."""

    address: str
    is_https: bool
    is_from_proxy: bool  # the peer is a trusted proxy
    is_forwarded: bool  # the request shows that a proxy passed it on, trusted or not


def of_request(scope: Scope, headers: Headers, policy: AccessPolicy) -> RequestOrigin:
    """Return the origin of a request."""
    client = scope.get("client")
    peer = str(client[0]) if client else "unix"
    is_forwarded = any(_is_mark(name) for name in headers)
    is_https = policy.has_tls or scope.get("scheme") == "https"
    if not policy.proxies.trust(peer):
        return RequestOrigin(peer, is_https, False, is_forwarded)

    hops = ",".join(headers.getlist("x-forwarded-for")).split(",")
    address = _client(peer, [hop.strip() for hop in hops if hop.strip()], policy)
    schemes = headers.getlist("x-forwarded-proto")
    if len(schemes) == 1:  # of several proxies in a row the first has the client's connection
        is_https = schemes[0].partition(",")[0].strip().lower() == "https"
    elif not schemes:
        is_https = is_https or policy.is_https_outside
    return RequestOrigin(address, is_https, True, is_forwarded)


def _is_mark(header: str) -> bool:
    return header in _MARKS or header.startswith(_MARKED)


def _client(peer: str, hops: list[str], policy: AccessPolicy) -> str:
    """Return the last address that no trusted proxy has: those before it, anybody may write."""
    address = peer
    for hop in reversed(hops):
        if not _is_address(hop):
            break
        address = hop
        if not policy.proxies.trust(hop):
            break
    return address


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return len(text) <= _LONGEST_ADDRESS
