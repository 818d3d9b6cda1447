"""The families: what can be read from a router. A new family is data in one of these modules."""

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

#: All families in the order they are read; a family comes after those it depends on.
FAMILIES: Mapping[str, Family] = {
    family.name: family
    for module in (system, interfaces, addresses, firewall, routing, tunnels, radio)
    for family in module.FAMILIES
}
#: The default families. They need five commands, which are cheap on every router.
DEFAULT = ("resource", "identity", "health", "interfaces", "ethernet")

#: A gauge for each family of a target: shows which families a router lacks.
PRESENT = f"{PREFIX}family_present"
PRESENT_HELP = "Does the router have what the family reads? 1 yes, 0 no"
