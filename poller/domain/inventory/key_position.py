"""A position in the order of keys: all devices by name, and within a device its targets by name.

The key of a target is `device/target`. Names have no slash, so a key is read in one way only. The
order is that of code points, on every database and in Python: a list that is read in pages
continues where it ended, whatever was added and removed meanwhile.
"""

from __future__ import annotations

from typing import NamedTuple


class Position(NamedTuple):
    """The end of a page: a target, or a device with all its targets (`target` is None)."""

    device: str
    target: str | None = None

    @property
    def text(self) -> str:
        """The position as text: `device/target`, or `device`."""
        return self.device if self.target is None else f"{self.device}/{self.target}"


def parse(text: str) -> Position:
    """Return the position of a text that `Position.text` made, or a person wrote."""
    device, slash, target = text.partition("/")
    return Position(device, target if slash else None)
