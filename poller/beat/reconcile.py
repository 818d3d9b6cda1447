"""Does the board agree with the inventory? SQL is the truth; the board is moved to match it.

Costs one cheap query when nothing changed. A database that is down changes nothing: polling goes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from sqlalchemy.engine import Engine

from poller import event_publisher
from poller.db.inventory import inventory_feed
from poller.domain.inventory.poll_target import TargetSpec
from poller.domain.record.event_kinds import Event, Kind
from poller.domain.scheduling import slots
from poller.observability import logs
from poller.state.board.moves import Board

log = logs.get(__name__)

#: A few new targets are polled at once, since somebody is watching; a whole fleet takes its slots.
AT_ONCE = 64


def reconcile(
    board: Board,
    engine: Engine,
    leader: str,
    now_ms: int,
    note: event_publisher.Note = event_publisher.only_log,
) -> bool:
    """Bring the board up to date. Returns whether anything was done. Raises StoreError, NotLeader."""
    version, have = inventory_feed.version(engine), board.version()
    if version == have:
        return False
    if have is None or version < have:
        note(_rebuild(board, engine, leader, "*" if have is None else str(have), now_ms))
    else:
        _apply_changes(board, engine, leader, have, now_ms)
    return True


def _rebuild(board: Board, engine: Engine, leader: str, since: str, now_ms: int) -> Event:
    """An empty, flushed or foreign board is filled from SQL, every target at its next slot."""
    unseen = board.ids()
    with inventory_feed.all_specs(engine) as fleet:
        there = _placed(_noting(fleet.specs, unseen), now_ms)
        done = board.place(leader, chain(there, _gone(unseen, now_ms)), fleet.version, since)
    data = {"version": fleet.version, "placed": done[0], "changed": done[1], "removed": done[2]}
    counted = ", ".join(f"{data[word]:,} {word}" for word in ("placed", "changed", "removed"))
    return Event(
        now_ms, Kind.BOARD_REBUILT, f"the board was filled from the inventory: {counted}", data=data
    )


def _apply_changes(board: Board, engine: Engine, leader: str, since: int, now_ms: int) -> None:
    changes = inventory_feed.changes_since(engine, since)
    gone = ((_removed(target_id), now_ms) for target_id in changes.removed)
    few = len(changes.specs) <= AT_ONCE
    specs = ((spec, now_ms) for spec in changes.specs) if few else _placed(changes.specs, now_ms)
    placed, changed, removed = board.place(leader, chain(gone, specs), changes.version, str(since))
    log.info(
        "inventory_reconciled",
        version=changes.version,
        placed=placed,
        changed=changed,
        removed=removed,
    )


def _placed(specs: Iterable[TargetSpec], now_ms: int) -> Iterator[tuple[TargetSpec, int]]:
    return ((spec, slots.next_slot_ms(spec.id, spec.interval_ms, now_ms)) for spec in specs)


def _noting(specs: Iterable[TargetSpec], unseen: set[int]) -> Iterator[TargetSpec]:
    for spec in specs:
        unseen.discard(spec.id)
        yield spec


def _gone(unseen: set[int], now_ms: int) -> Iterator[tuple[TargetSpec, int]]:
    """What the inventory did not have: asked for when all of it was read."""
    for target_id in unseen:
        yield _removed(target_id), now_ms


def _removed(target_id: int) -> TargetSpec:
    return TargetSpec(target_id, 0, "", 1000, 1, enabled=False)
