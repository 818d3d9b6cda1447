"""Actions on the board: compare it with the inventory, and repair it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from poller import event_publisher
from poller.db.inventory import inventory_feed
from poller.domain.access.actor import Actor
from poller.domain.access.audit_entry import AuditEntry
from poller.domain.inventory.poll_target import TargetSpec
from poller.domain.record.event_kinds import Event, Kind
from poller.domain.scheduling import slots
from poller.service import action_audit
from poller.state import redis_client
from poller.state.board.board_repair import Repair, Report
from poller.state.board.moves import Board
from poller.state.cluster import overview_reader

if TYPE_CHECKING:
    from poller.bootstrap import Services

#: Ids of targets that are shown per fault.
SHOWN = 20
#: The wait for the one script of a repair that reads every target: about 1 s for a million.
COUNTING_S = 5.0
FAULTS = ("lost", "doubled", "misplaced", "stray", "unreadable")


@dataclass(frozen=True, slots=True)
class BoardCheck:
    """The numbers of a check. `is_sound`: every enabled target is in exactly one place."""

    is_sound: bool
    due: int
    in_flight: int
    parked: int
    held: int
    pending: int
    lost: int
    doubled: int
    strays: int
    unreadable: int
    lost_targets: Sequence[int]
    doubled_targets: Sequence[int]
    stray_targets: Sequence[int]
    unreadable_targets: Sequence[int]


@dataclass(frozen=True, slots=True)
class BoardRepaired:
    """How many faults of each kind were mended, and ids of the first targets of each."""

    counts: Mapping[str, int]  # `lost_mended` and so on
    samples: Mapping[str, Sequence[int]]  # `lost_targets` and so on
    note: str = ""


def places(services: Services) -> Mapping[str, int]:
    """The number of targets in each place of the board."""
    view = overview_reader.read(services.redis, services.keys)
    return {"due": view.due, "in_flight": view.in_flight, "parked": view.parked, "held": view.held}


def verify(services: Services) -> Report:
    """Check that every enabled target of the inventory is in exactly one place."""
    with inventory_feed.all_specs(services.engine) as fleet:
        return Repair(services.board).check(fleet.specs)


def check(services: Services) -> BoardCheck:
    """Compare the board with the inventory. Reads every target. Raises StoreError."""
    report = verify(services)
    return BoardCheck(
        is_sound=report.sound,
        **places(services),
        pending=report.pending,
        lost=len(report.lost),
        doubled=len(report.doubled),
        strays=len(report.strays),
        unreadable=len(report.unreadable),
        lost_targets=report.lost[:SHOWN],
        doubled_targets=report.doubled[:SHOWN],
        stray_targets=report.strays[:SHOWN],
        unreadable_targets=report.unreadable[:SHOWN],
    )


def repair(services: Services, actor: Actor) -> BoardRepaired:
    """Put every target into exactly one place. Safe while polling. Raises StoreError.

    A silent Redis ends it within seconds. What was mended by then stays mended.
    """
    now_ms = services.board.now_ms()

    def next_slot_ms(spec: TargetSpec) -> int:
        return slots.next_slot_ms(spec.id, spec.interval_ms, now_ms)

    client = redis_client.connect(services.settings.broker_url, COUNTING_S, retries=0)
    try:
        patient = Repair(services.board, counting=Board(client, services.keys))
        with inventory_feed.all_specs(services.engine) as fleet:
            done = patient.repair(fleet.specs, fleet.version, next_slot_ms)
    finally:
        client.close()

    counts = {f"{fault}_mended": len(done.targets.get(fault, ())) for fault in FAULTS}
    counts["sums_mended"] = done.sums
    _emit_event(services, now_ms, counts)
    samples = {f"{fault}_targets": ids[:SHOWN] for fault, ids in done.targets.items()}
    mended = {name: number for name, number in counts.items() if number}
    entry = AuditEntry("board.repair", "board", after=mended, count=sum(counts.values()))
    return BoardRepaired(counts, samples, action_audit.record(services, actor, entry))


def _emit_event(services: Services, now_ms: int, counts: Mapping[str, int]) -> None:
    """Publish what was repaired; nothing if the board was sound."""
    mended = {name: number for name, number in counts.items() if number}
    if not mended:
        return
    parts = [f"{number:,} {name.removesuffix('_mended')}" for name, number in mended.items()]
    message = f"the board was repaired: {', '.join(parts)}"
    event_publisher.emit(services, [Event(now_ms, Kind.BOARD_REPAIRED, message, data=mended)])
