"""The settings of log-ins in the form that requests are judged by."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field

from poller.domain.access import group_roles
from poller.domain.access.scopes import Role
from poller.settings import Settings

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class AccessPolicy:
    """Which requests are believed what."""

    has_tls: bool = False
    proxies: tuple[Network, ...] = ()
    user_header: str = ""  # in which a trusted proxy names the user; "" for no such login
    groups_header: str = ""
    roles: Mapping[str, Role] = field(default_factory=dict)
    session_s: int = 3600
    idle_ms: int = _HOUR_MS
    has_provider: bool = False  # OpenID Connect

    def trusts(self, address: str) -> bool:
        """Whether the peer with this address is a proxy of ours."""
        if not self.proxies:
            return False
        try:
            found = ipaddress.ip_address(address)
        except ValueError:
            return False
        mapped = getattr(found, "ipv4_mapped", None) or found
        return any(mapped in network for network in self.proxies)


def of_settings(settings: Settings) -> AccessPolicy:
    """Return the policy of a web process."""
    networks = [ipaddress.ip_network(text, strict=False) for text in settings.trusted_proxies]
    return AccessPolicy(
        has_tls=bool(settings.web_tls_cert),
        proxies=tuple(networks),
        user_header=settings.proxy_user_header.lower(),
        groups_header=settings.proxy_groups_header.lower(),
        roles=group_roles.parse(settings.group_roles),
        session_s=round(settings.session_hours * 3600),
        idle_ms=round(settings.session_idle_hours * _HOUR_MS),
        has_provider=bool(settings.oidc_issuer),
    )
