"""Brings the board into agreement with the inventory in SQL, which is the truth.

Without changes this costs one small query. While the database is down, polling goes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from sqlalchemy.engine import Engine

from poller.db.inventory import inventory_feed
from poller.db.inventory.inventory_feed import Changes
from poller.db.record import event_rows
from poller.domain.inventory.poll_target import TargetSpec
from poller.domain.record.event_kinds import Event, Kind
from poller.domain.scheduling import slots
from poller.observability import logs
from poller.state.board import down_devices
from poller.state.board.board_values import Removal
from poller.state.board.moves import Board

log = logs.get(__name__)

#: A spec with the instant at which a new target is due, or a removal.
Change = tuple[TargetSpec, int] | Removal

#: Up to this many new targets are polled at once, since an operator may be watching; a larger
#: number takes its slots.
POLL_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Reconciled:
    """Whether the board changed, and the event of a board that was filled anew."""

    changed: bool
    event: Event | None = None


def reconcile(board: Board, engine: Engine, leader: str, now_ms: int) -> Reconciled:
    """Bring the board up to date. Raises StoreError, NotLeader."""
    inventory_version = inventory_feed.version(engine)
    board_version = board.version()
    if inventory_version == board_version:
        return Reconciled(changed=False)

    if board_version is None:
        _restore_news(board, engine, now_ms)
        return Reconciled(changed=True, event=_rebuild(board, engine, leader, "*", now_ms))

    since = str(board_version)
    if inventory_version < board_version:
        return Reconciled(changed=True, event=_rebuild(board, engine, leader, since, now_ms))

    changes = inventory_feed.changes_since(engine, board_version)
    if not changes.is_complete:
        # A board of an old backup: removals since then are pruned.
        return Reconciled(changed=True, event=_rebuild(board, engine, leader, since, now_ms))
    _apply_changes(board, changes, leader, since, now_ms)
    return Reconciled(changed=True)


def _rebuild(board: Board, engine: Engine, leader: str, since: str, now_ms: int) -> Event:
    """Fill an empty, flushed or foreign board from SQL, every target at its next slot."""
    absent = board.ids()
    with inventory_feed.all_specs(engine) as fleet:
        specs = _without(absent, fleet.specs)
        changes: Iterable[Change] = chain(_at_next_slots(specs, now_ms), _removals(absent))
        placed = board.place(leader, changes, fleet.version, since)

    counts = placed._asdict()
    summary = ", ".join(f"{count:,} {word}" for word, count in counts.items())
    return Event(
        at_ms=now_ms,
        kind=Kind.BOARD_REBUILT,
        message=f"the board was filled from the inventory: {summary}",
        data={"version": fleet.version, **counts},
    )


def _restore_news(board: Board, engine: Engine, now_ms: int) -> None:
    """Restore which devices were told as down and which targets as failing, from the events."""
    down = event_rows.devices_down(engine)
    troubled = event_rows.targets_failing(engine)
    down_devices.restore(board, down, troubled, now_ms)


def _apply_changes(board: Board, changes: Changes, leader: str, since: str, now_ms: int) -> None:
    if len(changes.specs) <= POLL_AT_ONCE:
        specs: Iterable[Change] = [(spec, now_ms) for spec in changes.specs]
    else:
        specs = _at_next_slots(changes.specs, now_ms)

    board_changes: Iterable[Change] = chain(_removals(changes.removed), specs)
    placed = board.place(leader, board_changes, changes.version, since)
    log.info("inventory_reconciled", version=changes.version, **placed._asdict())


def _at_next_slots(specs: Iterable[TargetSpec], now_ms: int) -> Iterator[tuple[TargetSpec, int]]:
    for spec in specs:
        slot_ms = slots.next_slot_ms(spec.id, spec.interval_ms, now_ms)
        yield spec, slot_ms


def _without(absent: set[int], specs: Iterable[TargetSpec]) -> Iterator[TargetSpec]:
    """Pass specs through, and take their ids out of `absent`."""
    for spec in specs:
        absent.discard(spec.id)
        yield spec


def _removals(target_ids: Iterable[int]) -> Iterator[Removal]:
    """Lazy: the ids may be complete only after all specs were read."""
    for target_id in target_ids:
        yield Removal(target_id)
