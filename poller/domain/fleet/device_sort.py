"""The orders of a list of devices, and the place in an order at which a page ends.

Only orders that an index of SQL or a list of the board has are offered: a page of a list of 100,000
devices must not sort them all.
"""

from __future__ import annotations

import enum
from typing import NamedTuple


class DeviceSort(enum.StrEnum):
    """An order of devices."""

    NAME = "name"
    SITE = "site"  # and by name within a site; devices without a site come last
    WORST = "worst"  # failing ones first, the longest without a good poll first; then by name
    LAST_OK = "last_ok"  # all that are not ok, the oldest good poll first; then by name


class Section(enum.IntEnum):
    """The parts of an order by the age of data, in their order."""

    ONCE_GOOD = 0
    NEVER_GOOD = 1
    REST = 2  # by name


class SortKey(NamedTuple):
    """The place of a device in an order. `score` is the end of a good poll in ms, and `text` the
    id of a target; in the rest the text is a name. By site both texts are names.
    """

    section: int
    score: int
    text: str
    name: str = ""


def site_key(site: str) -> tuple[bool, str]:
    """Sorts sites by name; no site is the last."""
    return not site, site
