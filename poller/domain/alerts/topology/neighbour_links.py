"""Links between devices, from what each says of its neighbours by LLDP or CDP."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Sighting:
    """One neighbour as a device sees it. Empty fields are not known."""

    local_port: str = ""
    chassis: str = ""
    name: str = ""
    port: str = ""  # of the neighbour
    address: str = ""


@dataclass(frozen=True, slots=True)
class LinkedDevice:
    """A device, what it says of itself, and its neighbours."""

    id: int
    name: str
    address: str
    chassis: str = ""
    system_name: str = ""
    sightings: Sequence[Sighting] = ()


@dataclass(frozen=True, slots=True)
class Link:
    """Two devices that are connected, seen from the first. The ports may be empty."""

    device: int
    port: str
    other: int
    other_port: str


@dataclass(frozen=True, slots=True)
class LinkMap:
    """The links of each device to each other one, and how many sightings are of no device."""

    links: Mapping[int, Mapping[int, Link]] = field(default_factory=dict)
    unknown: int = 0

    def neighbours(self, device: int) -> Mapping[int, Link]:
        return self.links.get(device, {})


def link_map(devices: Sequence[LinkedDevice]) -> LinkMap:
    """Return the links between known devices. Each is there from both ends."""
    finder = _Finder(devices)
    links: dict[int, dict[int, Link]] = {}
    unknown = 0
    for device in devices:
        for sighting in device.sightings:
            other = finder.find(sighting)
            if other is None:
                unknown += 1
            elif other != device.id:
                link = Link(device.id, sighting.local_port, other, sighting.port)
                links.setdefault(device.id, {})[other] = link
                mirrored = Link(other, sighting.port, device.id, sighting.local_port)
                links.setdefault(other, {}).setdefault(device.id, mirrored)
    return LinkMap(links, unknown)


class _Finder:
    """Finds the device that a sighting is of: by chassis, then by name, then by address.

    What several devices share names none of them.
    """

    def __init__(self, devices: Sequence[LinkedDevice]) -> None:
        self._chassis = _unique(devices, lambda each: [each.chassis])
        self._names = _unique(devices, lambda each: {_whole(each.name), _whole(each.system_name)})
        self._short = _unique(devices, lambda each: {_short(each.name), _short(each.system_name)})
        self._addresses = _unique(devices, lambda each: [each.address])

    def find(self, sighting: Sighting) -> int | None:
        steps = (
            (self._chassis, sighting.chassis),
            (self._names, _whole(sighting.name)),
            (self._short, _short(sighting.name)),
            (self._addresses, sighting.address),
        )
        for known, text in steps:
            if text and text in known:
                return known[text]
        return None


def _unique(
    devices: Sequence[LinkedDevice], texts_of: Callable[[LinkedDevice], Iterable[str]]
) -> dict[str, int]:
    """Return the device of each text that only one device has."""
    ids: dict[str, int] = {}
    uses: Counter[str] = Counter()
    for device in devices:
        for text in texts_of(device):
            ids[text] = device.id
            uses[text] += 1
    return {text: device_id for text, device_id in ids.items() if text and uses[text] == 1}


def _whole(name: str) -> str:
    """Return a name without what CDP adds to it: `SW1.net(FOX1)` is `sw1.net`."""
    return name.partition("(")[0].strip().rstrip(".").lower()


def _short(name: str) -> str:
    """Return a name without its domain. An address has none."""
    whole = _whole(name)
    return whole if whole.replace(".", "").isdigit() else whole.partition(".")[0]
