"""The chain of parents of a device: through which devices it is reached. It never goes round."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

#: No network has so many devices in a row; the walk ends here in any case.
LONGEST = 64
#: Names that the text of a chain lists.
_SHOWN = 10

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
    """Return the devices from one back to itself: `a, b, a`. Empty if its chain has an end, or
    goes round above it.
    """
    trip = {device: None}
    at = parents.get(device)
    while at is not None and at not in trip:
        trip[at] = None
        at = parents.get(at)
    return [*trip, device] if at == device else ()


def going_round(parents: Mapping[Key, Key]) -> set[Key]:
    """Return all devices that are above themselves. Each device is looked at once."""
    found: set[Key] = set()
    seen: set[Key] = set()
    for device in parents:
        path: dict[Key, None] = {}
        at: Key | None = device
        while at is not None and at not in seen and at not in path:
            path[at] = None
            at = parents.get(at)
        if at is not None and at in path:
            found.update(round_trip(parents, at))
        seen.update(path)
    return found


def first_round_trip(parents: Mapping[Key, Key], changed: Iterable[Key]) -> Sequence[Key]:
    """Return the first chain of changed devices that goes round; empty if none does."""
    round_ones = going_round(parents)
    for device in changed:
        if device in round_ones:
            return round_trip(parents, device)
    return ()


def text(names: Sequence[str]) -> str:
    """Return `sw1 -> core1 -> sw1`; of a long chain its beginning and its end."""
    is_long = len(names) > _SHOWN + 1
    return " -> ".join([*names[:_SHOWN], "...", names[-1]] if is_long else names)


def round_text(parents: Mapping[str, str], device: str) -> str:
    """Return `text` of the round trip of a device that is above itself. It takes few steps."""
    names = [device]
    while len(names) <= _SHOWN + 1 and (len(names) == 1 or names[-1] != device):
        names.append(parents[names[-1]])
    return text([*names, device] if names[-1] != device else names)
