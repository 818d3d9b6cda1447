"""The sites that a change creates: by their first device, or by a typing error."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy.engine import Engine

from poller.db.inventory import sites
from poller.domain.inventory.did_you_mean import nearest

_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class NewSite:
    name: str
    near: str | None  # an existing site with a similar name


def missing(engine: Engine, names: Iterable[str | None]) -> list[NewSite]:
    """Return the named sites that do not exist. Call this before the change that creates them."""
    named = dict.fromkeys(name for name in names if name)
    if not named:
        return []

    existing = [site.name for site in sites.listing(engine)]

    found = []
    for name in named:
        if name not in existing:
            similar = [other for other in existing if not _differ_in_number(name, other)]
            found.append(NewSite(name, nearest(name, similar)))

    return found


def _differ_in_number(name: str, other: str) -> bool:
    """Return True for `pop-12` and `pop-11`, which are two sites and no misspelling."""
    if _DIGITS.sub("", name) != _DIGITS.sub("", other):
        return False
    return _numbers(name) != _numbers(other)


def _numbers(name: str) -> list[int]:
    return [int(digits) for digits in _DIGITS.findall(name)]
