"""The windows of a filter: bounded steps through the devices or targets that it selects.

A key with an index that selects few rows gives candidates (page_candidates.py), and windows are
read from them. Otherwise windows of the fleet are looked at, and the rows that match are kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy.engine import Connection

from poller.db.inventory import device_windows, target_pages
from poller.db.inventory.device_windows import DeviceWindow
from poller.db.inventory.filter_conditions import SelectedDevice, SelectedTarget
from poller.db.inventory.target_pages import Candidates
from poller.domain.inventory.key_position import Position
from poller.domain.inventory.target_filter import TargetFilter
from poller.service.selection import page_candidates
from poller.service.selection.state_check import StateCheck

if TYPE_CHECKING:
    from poller.bootstrap import Services

#: Devices that are looked at, where that pays, before candidates of the whole fleet are listed.
FIRST_WALK = 2_000
_LARGEST_WINDOW = 5_000
_GROWTH = 4


class TargetWindow(NamedTuple):
    """Some targets that match, in the order of keys."""

    targets: list[SelectedTarget]
    scanned: int  # devices or candidates that were looked at
    end: Position | None  # None: there is nothing behind


class SelectedWindow(NamedTuple):
    """Some devices that match, in the order of names."""

    devices: list[SelectedDevice]
    scanned: int
    end: Position | None


class Selection:
    """The windows of a filter within one transaction."""

    def __init__(self, services: Services, conn: Connection, wanted: TargetFilter) -> None:
        self._services = services
        self._conn = conn
        self._wanted = wanted
        self._check = StateCheck(services.board, wanted) if wanted.needs_status else None
        self._site_ids = target_pages.site_ids(conn, wanted) if wanted.sites else []

    @cached_property
    def _candidates(self) -> Candidates | None:
        return page_candidates.find(self._services, self._conn, self._wanted, self._check)

    @property
    def decided_candidates(self) -> Candidates | None:
        """Candidates that all match but for keys that SQL checks, or None."""
        candidates = self._candidates
        is_decided = self._check is None or self._check.has_decided
        return candidates if is_decided else None

    def windows(self, after: Position | None, size: int) -> Iterator[TargetWindow]:
        """Yield windows of targets that match. The first has the size of a page."""
        first_walk, size = self._first_walk(size)
        position, is_last, walked = after, False, 0
        while not is_last:
            candidates = None if walked < first_walk else self._candidates
            if candidates is None:
                window = self._walked_window(position, size)
                walked += window.scanned
            else:
                window = self._candidate_window(candidates, position, size)
            yield window
            position, is_last = window.end, window.end is None
            size = min(size * _GROWTH, _LARGEST_WINDOW)

    def _first_walk(self, size: int) -> tuple[int, int]:
        """Return the number of devices to look at before candidates are listed, and the size of the
        first window.

        A site is small, and if one target in ten fails, a page of failing ones is near: both cost
        less than a list of all candidates.
        """
        if page_candidates.are_names(self._wanted):
            return 0, size
        share = self._check.share() if self._check else 0.0
        if 2 * size <= share * FIRST_WALK:
            return FIRST_WALK, min(round(1.3 * size / share), FIRST_WALK)
        return (FIRST_WALK if self._wanted.sites else 0), size

    def device_windows(self, after: Position | None, size: int) -> Iterator[SelectedWindow]:
        """Yield windows of devices that match."""
        if self._wanted.selects_targets:
            for window in self.windows(after, size):
                devices = [SelectedDevice(each.device_id, each.device) for each in window.targets]
                yield SelectedWindow(devices, window.scanned, window.end)
            return

        position, is_last = after, False
        while not is_last:
            page = self._plain_device_window(position, size)
            yield page
            position, is_last = page.end, page.end is None
            size = min(size * _GROWTH, _LARGEST_WINDOW)

    def _candidate_window(
        self, candidates: Candidates, after: Position | None, size: int
    ) -> TargetWindow:
        rows = target_pages.targets_among(self._conn, self._wanted, candidates, after, size)
        end = Position(rows[-1].device, rows[-1].name) if len(rows) == size else None
        found = self._check.matching(rows) if self._check else rows
        return TargetWindow(found, len(rows), end)

    def _walked_window(self, after: Position | None, size: int) -> TargetWindow:
        window = self._walk(after, size)
        ids = [device.id for device in window.devices]
        rows = target_pages.targets_of(self._conn, self._wanted, ids) if ids else []
        if after is not None and after.target is not None:
            rows = [row for row in rows if (row.device, row.name) > after]
        found = self._check.matching(rows) if self._check else rows
        return TargetWindow(found, window.scanned, window.end)

    def _plain_device_window(self, after: Position | None, size: int) -> SelectedWindow:
        if self._candidates is not None:
            arguments = (self._conn, self._wanted, self._candidates, after, size)
            rows = target_pages.devices_among(*arguments)
            end = Position(rows[-1].name) if len(rows) == size else None
            return SelectedWindow(rows, len(rows), end)
        window = self._walk(after, size)
        devices = [SelectedDevice(device.id, device.name) for device in window.devices]
        return SelectedWindow(devices, window.scanned, window.end)

    def _walk(self, after: Position | None, size: int) -> DeviceWindow:
        if self._wanted.sites and not self._site_ids:
            return DeviceWindow([], 0, None)
        return device_windows.read(self._conn, self._wanted, self._site_ids, after, size)
