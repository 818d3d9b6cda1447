"""The target of a scrape: a device of the inventory, or an address that may be polled."""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING

from poller import errors
from poller.db.scrapes.scraped_devices import ScrapedDevice
from poller.domain.access.actor import Actor
from poller.domain.inventory.host_port import HostPort
from poller.domain.scrapes import allowed_addresses
from poller.service.scrapes.known_devices import Devices, KnownDevices

if TYPE_CHECKING:
    from poller.bootstrap import Services


@dataclass(frozen=True, slots=True)
class Place:
    """Where a scrape is directed. A stranger has no devices."""

    text: str  # what the devices were found by
    kept: Devices  # as they are kept under this text
    devices: Devices  # those that the actor may see
    port: int | None  # None: that of the target that answers


def find(
    known: KnownDevices, actor: Actor, text: str, host: HostPort | None, default_port: int | None
) -> Place:
    """Return the place of a target: a device's name, else an address. Raises StoreError.

    The host of an address with a port may be the name of a device, too. A device of another site
    does not exist for a token of one site.
    """
    kept = known.find(text)
    by_name = [each for each in kept if each.name == text]
    if by_name:
        return Place(text, kept, _visible(by_name, actor), None)
    if host is None:
        return Place(text, kept, (), None)
    address = _canonical(host.host)
    kept = known.find(address)
    found = [each for each in kept if each.address == address] or list(kept)
    return Place(address, kept, _visible(found, actor), host.port or default_port)


def stranger_address(services: Services, actor: Actor, host: HostPort | None, text: str) -> str:
    """Return the IP address of a target outside the inventory. Raises NotAllowed, InvalidInput.

    The address that was checked is the one that is polled: a name could change its address.
    """
    networks = services.settings.scrape_networks
    if host is None or actor.site is not None or not networks:
        raise _refusal(text, actor)
    for address in _addresses(host.host):
        if allowed_addresses.is_allowed(address, networks):
            return address
    raise _refusal(text, actor)


def _visible(found: list[ScrapedDevice], actor: Actor) -> Devices:
    return tuple(each for each in found if actor.site in (None, each.site))


def _canonical(host: str) -> str:
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return host


def _addresses(host: str) -> list[str]:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError):
        return []
    return [str(address[0]) for *_, address in found]


def _refusal(text: str, actor: Actor) -> errors.NotAllowed:
    if actor.site is not None:
        return errors.NotAllowed(f"target '{text}' is no device of site \"{actor.site}\"")
    return errors.NotAllowed(
        f"target '{text}' is no device of the inventory, and in none of scrape_networks",
        hint="add the device, or set POLLER_SCRAPE_NETWORKS",
    )
