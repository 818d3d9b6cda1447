"""Suggested parents: of two linked devices, the one nearer to the core is the parent.

The core of a network of links is what a person names, else the top of the parents that are stored
already, else the device with the most links. A device that has several ways up at the same
distance gets no suggestion that could be accepted unseen: a person chooses.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from poller.domain.alerts.topology import parent_chain
from poller.domain.alerts.topology.neighbour_links import Link, LinkMap


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A parent for a device. `others` are parents that would do as well."""

    device: int
    parent: int
    link: Link  # seen from the device
    core: int
    distance: int  # links from the device to the core
    why_core: str  # `named`, `stored` or `links`
    others: Sequence[int] = ()

    @property
    def is_clear(self) -> bool:
        return not self.others


@dataclass(frozen=True, slots=True)
class _Walk:
    """The distance of each device from the core of its network."""

    distance: dict[int, int] = field(default_factory=dict)
    core: dict[int, int] = field(default_factory=dict)
    why: dict[int, str] = field(default_factory=dict)  # by core


def suggest(
    links: LinkMap,
    names: Mapping[int, str],
    stored: Mapping[int, int],
    cores: Collection[int] = (),
) -> list[Suggestion]:
    """Return a suggestion for each device with a link toward a core, in the order of names."""
    walk = _walked(links, names, stored, cores)
    found = []
    for device in sorted(walk.distance, key=lambda each: names[each]):
        distance = walk.distance[device]
        if distance == 0:
            continue
        nearer = [
            other for other in links.neighbours(device) if walk.distance.get(other) == distance - 1
        ]
        nearer.sort(key=lambda other: (other != stored.get(device), names[other]))
        core = walk.core[device]
        first = nearer[0]
        others = nearer[1:] if stored.get(device) != first else []
        link = links.neighbours(device)[first]
        why = walk.why[core]
        found.append(Suggestion(device, first, link, core, distance, why, others))
    return found


def _walked(
    links: LinkMap, names: Mapping[int, str], stored: Mapping[int, int], cores: Collection[int]
) -> _Walk:
    walk = _Walk()
    for core in sorted(cores, key=lambda each: names[each]):
        walk.why[core] = "named"
    _spread(walk, links, list(walk.why))
    for device in sorted(links.links, key=lambda each: names[each]):
        if device not in walk.distance:
            core, why = _core(_network(links, device), links, names, stored)
            walk.why[core] = why
            _spread(walk, links, [core])
    return walk


def _spread(walk: _Walk, links: LinkMap, cores: Sequence[int]) -> None:
    """Note the distance of all devices that are linked with these cores, the nearest first."""
    waiting = deque(cores)
    for core in cores:
        walk.distance[core], walk.core[core] = 0, core
    while waiting:
        device = waiting.popleft()
        for other in sorted(links.neighbours(device)):
            if other not in walk.distance:
                walk.distance[other] = walk.distance[device] + 1
                walk.core[other] = walk.core[device]
                waiting.append(other)


def _network(links: LinkMap, start: int) -> set[int]:
    """Return all devices that are linked with one, over any number of links."""
    found = {start}
    waiting = [start]
    while waiting:
        for other in links.neighbours(waiting.pop()):
            if other not in found:
                found.add(other)
                waiting.append(other)
    return found


def _core(
    network: Collection[int],
    links: LinkMap,
    names: Mapping[int, str],
    stored: Mapping[int, int],
) -> tuple[int, str]:
    """Return the core of a network, and why it is the core."""
    tops = [_top(stored, device) for device in network if device in stored]
    inside = [top for top in tops if top in network]
    if inside:
        return max(inside, key=lambda top: (inside.count(top), names[top])), "stored"
    ranked = sorted(network, key=lambda each: (-len(links.neighbours(each)), names[each]))
    return ranked[0], "links"


def _top(stored: Mapping[int, int], device: int) -> int:
    return parent_chain.above(stored, device)[-1]
