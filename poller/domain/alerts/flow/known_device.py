"""A device as rules and alerts look at it: its facts, its targets, and its parent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from poller.domain.alerts.topology import parent_chain
from poller.domain.inventory.filter_match import DeviceFacts, FilterMatch

#: Parents that are followed upwards. A longer chain is cut, and a circle ends.
LONGEST_CHAIN = parent_chain.LONGEST


@dataclass(frozen=True, slots=True)
class KnownTarget:
    """A target of a known device. `interval_ms` is the longest one if it is adaptive."""

    id: int
    name: str
    collector: str
    interval_ms: int
    enabled: bool
    created_ms: int
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KnownDevice:
    """A device of the inventory with all its targets; `parent_id` is None without a parent."""

    id: int
    name: str
    address: str
    site: str
    tags: Sequence[str]
    enabled: bool
    parent_id: int | None = None
    targets: Mapping[int, KnownTarget] = field(default_factory=dict)

    @property
    def polled_ids(self) -> tuple[int, ...]:
        """The ids of the targets that are polled."""
        if not self.enabled:
            return ()
        return tuple(each.id for each in self.targets.values() if each.enabled)

    def facts(self, target_id: int | None = None) -> DeviceFacts:
        """Return what a filter looks at, for the device or one of its targets."""
        target = self.targets.get(target_id) if target_id is not None else None
        if target is None:
            return DeviceFacts(self.name, self.address, self.site, self.tags)
        return DeviceFacts(
            self.name, self.address, self.site, self.tags, target.collector, target.options
        )


def is_wanted(wanted: FilterMatch, device: KnownDevice, target_id: int | None = None) -> bool:
    """Whether a rule's filter accepts a target, or a device by itself or by any of its targets."""
    if target_id is not None:
        return wanted.accepts(device.facts(target_id))
    if wanted.accepts(device.facts()):
        return True
    return any(wanted.accepts(device.facts(each)) for each in device.targets)


def chain(device_id: int, devices: Mapping[int, KnownDevice]) -> list[int]:
    """Return the parents of a device, the nearest first."""
    found: list[int] = []
    device = devices.get(device_id)
    while device is not None and device.parent_id is not None and len(found) < LONGEST_CHAIN:
        if device.parent_id in found or device.parent_id == device_id:
            break
        found.append(device.parent_id)
        device = devices.get(device.parent_id)
    return found


def is_its_own_parent(device_id: int, devices: Mapping[int, KnownDevice]) -> bool:
    """Whether the parents of a device lead back to it, so that none of them explains anything."""
    above = chain(device_id, devices)
    last = devices.get(above[-1]) if above else None
    return last is not None and last.parent_id == device_id


def common_parents(
    device_ids: Sequence[int], parents: Mapping[int, int], share: float
) -> list[int]:
    """Return the devices behind which at least this share of the devices is, the nearest first.

    `parents` maps each device to its parent, as far as parents are known.
    """
    behind: dict[int, int] = {}
    for device_id in device_ids:
        seen = {device_id}
        parent = parents.get(device_id)
        while parent is not None and parent not in seen and len(seen) <= LONGEST_CHAIN:
            seen.add(parent)
            behind[parent] = behind.get(parent, 0) + 1
            parent = parents.get(parent)
    # A device does not stand behind itself, and a site of one device has no common parent.
    wanted = share * max(1, len(device_ids) - 1)
    enough = [parent for parent, number in behind.items() if number >= max(2, wanted)]
    return sorted(enough, key=lambda parent: behind[parent])
