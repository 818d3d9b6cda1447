"""How many targets or devices match a filter: exact where an index or a counter says it at once,
else a lower bound from as many rows as a request may look at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from poller.db import engine as sql
from poller.db.inventory import target_pages
from poller.domain.inventory.target_filter import ANY, TargetFilter
from poller.service import target_selection
from poller.service.selection.selection_windows import SelectedWindow, Selection, TargetWindow
from poller.service.selection.target_page import SCAN_LIMIT

if TYPE_CHECKING:
    from poller.bootstrap import Services

W = TypeVar("W", TargetWindow, SelectedWindow)
_WINDOW = 1_000


class Count(NamedTuple):
    """How many match; a lower bound unless it is exact."""

    number: int
    is_exact: bool


def count_targets(services: Services, wanted: TargetFilter = ANY) -> Count:
    """Count the targets that match. Raises UnknownName for an unknown site or collector,
    StoreError.
    """
    target_selection.refuse_unknown_names(services, wanted)
    with sql.reading(services.engine) as conn:
        selection = Selection(services, conn, wanted)
        if _is_indexed(wanted):
            return Count(target_pages.count_targets(conn, wanted, None), True)
        candidates = selection.decided_candidates
        if candidates is not None:
            return Count(target_pages.count_targets(conn, wanted, candidates), True)
        return _walked(selection.windows(None, _WINDOW), lambda window: len(window.targets))


def count_devices(services: Services, wanted: TargetFilter = ANY) -> Count:
    """Count the devices that match; one matching target is enough. Raises NotFound for an unknown
    site or collector, StoreError.
    """
    target_selection.refuse_unknown_names(services, wanted)
    with sql.reading(services.engine) as conn:
        selection = Selection(services, conn, wanted)
        if not wanted.selects_targets:
            if _is_indexed(wanted):
                return Count(target_pages.count_devices(conn, wanted, None), True)
            candidates = selection.decided_candidates
            if candidates is not None:
                return Count(target_pages.count_devices(conn, wanted, candidates), True)
        seen: set[int] = set()

        def new(window: SelectedWindow) -> int:
            before = len(seen)
            seen.update(device.id for device in window.devices)
            return len(seen) - before

        return _walked(selection.device_windows(None, _WINDOW), new)


def _is_indexed(wanted: TargetFilter) -> bool:
    """Whether an index has exactly the rows: no key but sites and collectors."""
    return replace(wanted, sites=(), collectors=()) == ANY


def _walked(windows: Iterator[W], count: Callable[[W], int]) -> Count:
    number = scanned = 0
    for window in windows:
        number += count(window)
        scanned += window.scanned
        if window.end is not None and scanned >= SCAN_LIMIT:
            return Count(number, False)
    return Count(number, True)
