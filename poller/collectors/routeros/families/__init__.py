"""What can be read from a router. To add a family, write it down in one of these files; nothing else changes."""

from __future__ import annotations

from collections.abc import Mapping

from poller.collectors.routeros.families import (
    addresses,
    firewall,
    interfaces,
    radio,
    routing,
    system,
    tunnels,
)
from poller.collectors.routeros.families.family import PREFIX, Family

#: In the order in which they are read: what others build on comes first.
FAMILIES: Mapping[str, Family] = {
    family.name: family
    for group in (system, interfaces, addresses, firewall, routing, tunnels, radio)
    for family in group.FAMILIES
}
#: Cheap on every router, and what most people want: five sentences.
DEFAULT = ("resource", "identity", "health", "interfaces", "ethernet")

#: A reading for each family of a target: people see which of them a router does not have.
PRESENT = f"{PREFIX}family_present"
PRESENT_HELP = "Does the router have what the family reads? 1 yes, 0 no"
