"""The chain of parents of a device: through which devices it is reached. It never goes round."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

#: No network has so many devices in a row; the walk ends here in any case.
LONGEST = 64

Key = TypeVar("Key", bound=Hashable)


def above(parents: Mapping[Key, Key], device: Key) -> list[Key]:
    """Return the parents above a device, the nearest first. It ends where the chain goes round."""
    found: list[Key] = []
    at = parents.get(device)
    while at is not None and at != device and at not in found and len(found) < LONGEST:
        found.append(at)
        at = parents.get(at)
    return found


def round_trip(parents: Mapping[Key, Key], device: Key) -> Sequence[Key]:
    """Return the devices from one back to itself: `a, b, a`. Empty if its chain has an end."""
    trip: list[Key] = [device]
    trip += above(parents, device)
    if parents.get(trip[-1]) != device:
        return ()
    trip.append(device)
    return trip


def first_round_trip(parents: Mapping[Key, Key], changed: Iterable[Key]) -> Sequence[Key]:
    """Return the first chain of changed devices that goes round; empty if none does."""
    for device in changed:
        found = round_trip(parents, device)
        if found:
            return found
    return ()


def text(names: Iterable[str]) -> str:
    """Return `sw1 -> core1 -> sw1`."""
    return " -> ".join(names)
