"""Proxies of ours: their addresses, and the users whom they name. Nobody else is believed."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from poller import errors
from poller.domain.access import group_roles, scopes
from poller.domain.access.actor import Actor, ActorKind
from poller.domain.access.scopes import Role
from poller.domain.inventory import naming

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True)
class TrustedProxies:
    """The proxies in front of the page or of Flower."""

    networks: tuple[Network, ...] = ()
    user_header: str = ""  # in lower case; "" if they name no user
    groups_header: str = ""
    roles: Mapping[str, Role] = field(default_factory=dict)  # by group

    def trust(self, address: str) -> bool:
        """Whether the peer with this address is one of them."""
        if not self.networks:
            return False
        try:
            found = ipaddress.ip_address(address)
        except ValueError:
            return False
        plain = getattr(found, "ipv4_mapped", None) or found
        return any(plain in network for network in self.networks)

    def actor(self, names: Sequence[str], groups: Sequence[str], address: str) -> Actor:
        """Return the user that a trusted proxy names. Raises NotLoggedIn, NotAllowed.

        `names` and `groups` are the values of all headers of that name.
        """
        if len(names) != 1 or not names[0].strip():
            raise errors.NotLoggedIn(
                f"the proxy sent {len(names)} names of a user", hint="it must replace the header"
            )
        if len(groups) > 1:
            raise errors.NotLoggedIn(
                f"the proxy sent {len(groups)} lists of groups", hint="it must replace the header"
            )
        name = naming.printable(names[0].strip())[: naming.LONGEST_NAME]
        words = [group.strip() for group in ",".join(groups).split(",")]
        role = group_roles.highest(words, self.roles)
        if role is None:
            raise errors.NotAllowed(
                f'proxy "{name}" may not use this: none of its groups has a role',
                hint="name a group and its role in POLLER_GROUP_ROLES",
            )
        return Actor(name, ActorKind.PROXY, address, scopes.of_role(role))


def make(
    addresses: Sequence[str], user_header: str, groups_header: str, roles: Sequence[str]
) -> TrustedProxies:
    """Return the proxies of the settings."""
    networks = tuple(ipaddress.ip_network(text, strict=False) for text in addresses)
    parsed = group_roles.parse(roles)
    return TrustedProxies(networks, user_header.lower(), groups_header.lower(), parsed)
