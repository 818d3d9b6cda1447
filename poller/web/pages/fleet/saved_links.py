"""Saved filters as links above the list of devices, and the form that saves the present view."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from poller import errors
from poller.domain.access.actor import Actor
from poller.domain.fleet.device_sort import DeviceSort
from poller.domain.fleet.saved_filter import SavedFilter
from poller.web.pages.fleet.devices_query import DevicesQuery


@dataclass(frozen=True, slots=True)
class SavedLink:
    """One saved filter. `title` names its owner if it is somebody else's."""

    name: str
    title: str
    url: str
    is_own: bool
    is_shown: bool  # it is the present view


@dataclass(frozen=True, slots=True)
class SavingForm:
    """The typed values of a view to save, and the fault in them."""

    name: str = ""
    shared: bool = False
    error: errors.InvalidInput | None = None


def build(saved: Sequence[SavedFilter], query: DevicesQuery, actor: Actor) -> Sequence[SavedLink]:
    """Return the links, which keep the columns and the size of the page."""
    links = []
    for each in saved:
        is_own = each.owner == actor.name
        links.append(
            SavedLink(
                name=each.name,
                title=each.name if is_own else f"{each.name} ({each.owner})",
                url=query.url(where=each.where, sort=each.sort),
                is_own=is_own,
                is_shown=(each.where, each.sort) == (query.where, query.sort),
            )
        )
    return links


def command(where: str, sort: DeviceSort) -> str:
    """The command that saves the same view."""
    given = f" --where {shlex.quote(where)}" if where else ""
    order = "" if sort is DeviceSort.NAME else f" --sort {sort}"
    return f"poller filter save NAME{given}{order}"
