"""Devices by the age of their data: the longest without a good poll first, then all others by name.

The board has a list of all targets that are not ok, sorted by the end of their last good poll. A
device stands at its first target of that list that matches, and comes once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy.engine import Connection

from poller.db import engine as sql
from poller.db.inventory import filter_candidates, target_pages
from poller.db.inventory.filter_conditions import SelectedTarget
from poller.db.inventory.target_pages import Candidates
from poller.db.tables import targets
from poller.domain.fleet.device_sort import Section, SortKey
from poller.domain.inventory.key_position import Position
from poller.domain.inventory.target_filter import TargetFilter, TargetState
from poller.domain.record import target_status
from poller.service.selection import target_page
from poller.service.selection.state_check import StateCheck
from poller.state.board.unwell_targets import UnwellTargets
from poller.state.fleet import unwell_ranks
from poller.state.fleet.unwell_ranks import Rank

if TYPE_CHECKING:
    from poller.bootstrap import Services

_LARGEST_WINDOW = 2_000
_GROWTH = 4
#: States of failing targets, and of those that are in the list.
_OF_FAILING = frozenset((TargetState.FAILING, TargetState.OPEN, TargetState.PARKED))
_OF_UNWELL = frozenset(TargetState) - {TargetState.OK, TargetState.DISABLED}


class _Part(NamedTuple):
    """Some devices in order with their keys, and the end of what was looked at; None: of all."""

    devices: Sequence[tuple[SortKey, int]]
    end: SortKey | None
    scanned: int


class UnwellOrder:
    """The order of the devices that match a filter. `failing_only` leaves the others to the rest.

    Every method raises StoreError.
    """

    def __init__(self, services: Services, wanted: TargetFilter, *, failing_only: bool) -> None:
        self._services = services
        self._wanted = wanted
        self._failing_only = failing_only
        self._unwell = UnwellTargets(services.board)
        self._check = StateCheck(services.board, wanted) if wanted.needs_status else None

    def page(self, limit: int, after: SortKey | None) -> tuple[list[int], SortKey | None]:
        """Return the ids of the next devices, and the key to go on after; None at the end."""
        found: list[int] = []
        scanned = 0
        for part in self._parts(after, limit):
            for key, device_id in part.devices:
                found.append(device_id)
                if len(found) == limit:
                    return found, key
            scanned += part.scanned
            if part.end is not None and scanned >= target_page.SCAN_LIMIT:
                return found, part.end
        return found, None

    def _parts(self, after: SortKey | None, size: int) -> Iterator[_Part]:
        begin = after.section if after else Section.ONCE_GOOD
        if self._may_be_listed:
            for section in (Section.ONCE_GOOD, Section.NEVER_GOOD):
                if section >= begin:
                    yield from self._of_section(section, after if section == begin else None, size)
        rest = self._rest
        if rest is not None:
            name = after.text if after and begin == Section.REST else ""
            yield from self._by_name(rest, name, size)

    @property
    def _may_be_listed(self) -> bool:
        """Whether a target of the list can match at all."""
        states = self._wanted.states
        listed = _OF_FAILING if self._failing_only else _OF_UNWELL
        return not states or not listed.isdisjoint(states)

    @property
    def _rest(self) -> TargetFilter | None:
        """The filter of the devices that come after the list; None if there can be none."""
        wanted = self._wanted
        if not self._failing_only and wanted.codes:
            return None  # a target with a code is in the list
        if not wanted.states:
            return wanted
        listed = {TargetState.FAILING}
        if not self._failing_only:
            listed.add(TargetState.DEGRADED)
        states = tuple(state for state in wanted.states if state not in listed)
        return replace(wanted, states=states) if states else None

    def _of_section(self, section: Section, after: SortKey | None, size: int) -> Iterator[_Part]:
        rank = Rank(after.score, after.text) if after else None
        is_never = section is Section.NEVER_GOOD
        board = self._services.board
        while True:
            ranks = unwell_ranks.window(board, never=is_never, after=rank, size=size)
            if not ranks:
                return
            rank = ranks[-1]
            found = [
                (SortKey(section, each.ok_ms, each.member), device_id)
                for each, device_id in self._devices(ranks)
            ]
            yield _Part(found, SortKey(section, rank.ok_ms, rank.member), len(ranks))
            size = min(size * _GROWTH, _LARGEST_WINDOW)

    def _devices(self, ranks: Sequence[Rank]) -> list[tuple[Rank, int]]:
        """The devices that stand at one of these places, in their order."""
        ids = self._listed([int(rank.member) for rank in ranks if rank.member.isdigit()])
        if not ids:
            return []
        with sql.reading(self._services.engine) as conn:
            devices = {row.id: row.device_id for row in self._matching(conn, ids)}
            first = self._first_ranks(conn, set(devices.values()))
        found = []
        for rank in ranks:
            device_id = devices.get(int(rank.member)) if rank.member.isdigit() else None
            if device_id is not None and first.get(device_id) == rank:
                found.append((rank, device_id))
        return found

    def _listed(self, ids: Sequence[int]) -> list[int]:
        """The ones of these targets of the list that count in this order."""
        if not self._failing_only:
            return list(ids)
        texts = self._unwell.statuses(ids)
        return [each for each in ids if target_status.is_failing(texts.get(each, ""))]

    def _matching(self, conn: Connection, ids: Sequence[int]) -> list[SelectedTarget]:
        wanted = self._wanted
        if wanted.addresses:
            ids = filter_candidates.of_addresses(conn, wanted, ids, targets.c.id)
        candidates = Candidates(targets.c.id, ids)
        rows = target_pages.targets_among(conn, wanted, candidates, None, max(1, len(ids)))
        return self._check.matching(rows) if self._check else rows

    def _first_ranks(self, conn: Connection, device_ids: set[int]) -> dict[int, Rank]:
        """The place of each device: that of its first target of the list that matches."""
        if not device_ids:
            return {}
        rows = target_pages.targets_of(conn, self._wanted, sorted(device_ids))
        if self._check:
            rows = self._check.matching(rows)
        device_of = {row.id: row.device_id for row in rows if row.enabled}
        ranks = unwell_ranks.ranks_of(self._services.board, list(device_of))
        first: dict[int, Rank] = {}
        for target_id in self._listed(list(ranks)):
            device_id, rank = device_of[target_id], ranks[target_id]
            known = first.get(device_id)
            if known is None or _order(rank) < _order(known):
                first[device_id] = rank
        return first

    def _by_name(self, rest: TargetFilter, name: str, size: int) -> Iterator[_Part]:
        """The devices that have no place in the list."""
        position = Position(name) if name else None
        while True:
            window = target_page.device_page(self._services, rest, position, size)
            ids = {device.id for device in window.devices}
            with sql.reading(self._services.engine) as conn:
                placed = self._first_ranks(conn, ids)
            found = [
                (SortKey(Section.REST, 0, device.name), device.id)
                for device in window.devices
                if device.id not in placed
            ]
            position = window.next
            if position is None:
                yield _Part(found, None, window.scanned)
                return
            yield _Part(found, SortKey(Section.REST, 0, position.device), window.scanned)


def _order(rank: Rank) -> tuple[bool, int, str]:
    """Sorts those that had a good poll before those that never had one."""
    return rank.ok_ms == 0, rank.ok_ms, rank.member
