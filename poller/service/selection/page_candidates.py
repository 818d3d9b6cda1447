"""The candidates of a filter: few rows, found by an index, among which all are that match."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlalchemy.engine import Connection

from poller.db.inventory import filter_candidates, inventory_feed
from poller.db.inventory.target_pages import Candidates
from poller.db.tables import devices, targets
from poller.domain.inventory.target_filter import TargetFilter, TargetState
from poller.service.selection.state_check import StateCheck

if TYPE_CHECKING:
    from poller.bootstrap import Services

#: A key that selects more rows than this gives no candidates.
MOST = 20_000


def find(
    services: Services, conn: Connection, wanted: TargetFilter, check: StateCheck | None
) -> Candidates | None:
    """Return the candidates of the first key that has few, or None. Their addresses match.

    `check` keeps the conditions of candidates from the board. Raises StoreError.
    """
    candidates = _of_first_key(services, conn, wanted, check)
    if candidates is None or not wanted.addresses:
        return candidates
    ids = filter_candidates.of_addresses(conn, wanted, candidates.ids, candidates.column)
    return Candidates(candidates.column, ids)


def are_names(wanted: TargetFilter) -> bool:
    """Whether exact names of devices give the candidates."""
    return filter_candidates.are_exact(wanted.names)


def _of_first_key(
    services: Services, conn: Connection, wanted: TargetFilter, check: StateCheck | None
) -> Candidates | None:
    named = filter_candidates.named_device_ids(conn, wanted)
    if named is not None:
        return Candidates(devices.c.id, named)
    if check is not None:
        of_states = _of_states(services, conn, wanted, check)
        if of_states is not None:
            return Candidates(targets.c.id, of_states)
    addressed = filter_candidates.addressed_device_ids(conn, wanted, MOST)
    if addressed is not None:
        return Candidates(devices.c.id, addressed)
    collected = filter_candidates.collected_target_ids(conn, wanted, MOST)
    if collected is not None:
        return Candidates(targets.c.id, collected)
    credentialed = filter_candidates.credentialed_target_ids(conn, wanted, MOST)
    if credentialed is not None:
        return Candidates(targets.c.id, credentialed)
    tagged = filter_candidates.tagged_device_ids(conn, wanted, MOST)
    return None if tagged is None else Candidates(devices.c.id, tagged)


def _of_states(
    services: Services, conn: Connection, wanted: TargetFilter, check: StateCheck
) -> Sequence[int] | None:
    """Return candidates from the board, and from SQL for disabled ones."""
    if TargetState.UNKNOWN in wanted.states and not _is_up_to_date(services, conn):
        return None  # a target that is not on the board yet was never polled either
    found: set[int] = set()
    if wanted.codes or set(wanted.states) != {TargetState.DISABLED}:
        of_board = check.candidate_ids(MOST)
        if of_board is None:
            return None
        found.update(of_board)
    if TargetState.DISABLED in wanted.states and not wanted.codes:  # a disabled one has no code
        disabled = filter_candidates.disabled_target_ids(conn, MOST)
        if disabled is None:
            return None
        found.update(disabled)
    return sorted(found)


def _is_up_to_date(services: Services, conn: Connection) -> bool:
    """Whether all changes of the inventory are on the board."""
    return services.board.version() == inventory_feed.version_in(conn)
