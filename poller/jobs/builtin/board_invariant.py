"""The job `board-audit`: compares the board with the inventory, and dead letters with the board.

It only reads. The leader repairs a board that does not add up, and writes missing letters.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from poller.db.inventory import inventory_feed
from poller.db.record import dead_letter_rows
from poller.db.record.dead_letter_rows import Wanted
from poller.domain.batched import batched
from poller.domain.inventory.poll_target import TargetSpec
from poller.jobs import api
from poller.state.board.board_repair import Repair, Report

#: Pause before the second look. An edit between two reads looks like damage once.
SECOND_LOOK_S = 5.0
#: Targets that a failure names for each kind of damage.
SHOWN = 20

_PAGE = 1_000


class BoardDamaged(Exception):
    """Targets are in no place of the board, in two, or not in the inventory."""


@dataclass(frozen=True, slots=True)
class Damage:
    """Ids of targets by damage, as `poller board check` names it."""

    targets: dict[str, list[int]]

    @classmethod
    def of(cls, report: Report) -> Damage:
        kinds = ("lost", "doubled", "strays", "unreadable")
        return cls({kind: list(getattr(report, kind)) for kind in kinds})

    def shared_with(self, other: Damage) -> Damage:
        """The damage that both have."""
        targets = {}
        for kind, ids in self.targets.items():
            targets[kind] = sorted(set(ids).intersection(other.targets[kind]))
        return Damage(targets)

    @property
    def counts(self) -> dict[str, int]:
        return {kind: len(ids) for kind, ids in self.targets.items()}

    def __bool__(self) -> bool:
        return any(self.targets.values())

    def __str__(self) -> str:
        parts = []
        for kind, ids in self.targets.items():
            if ids:
                some = ", ".join(map(str, ids[:SHOWN])) + (", ..." if len(ids) > SHOWN else "")
                parts.append(f"{len(ids):,} {kind} (targets {some})")
        return "; ".join(parts)


@api.job(
    every_s=600,
    name="board-audit",
    run_timeout_s=300,
    retry_delays_s=(60.0, 120.0),
)
def board_audit(context: api.Context) -> dict[str, Any]:
    """Check that every target is in one place of the board, and that parked ones have a letter.

    Fails while the board is damaged.
    """
    damage = _look(context)
    if damage:
        time.sleep(SECOND_LOOK_S)
        damage = damage.shared_with(_look(context))
    letters = _letters(context)
    if damage:
        raise BoardDamaged(f"the board is damaged: {damage}; repair it with: poller board repair")
    return {**damage.counts, **letters}


def _look(context: api.Context) -> Damage:
    services = context.services
    with inventory_feed.all_specs(services.engine) as fleet:
        specs = _with_heartbeats(context, fleet.specs)
        return Damage.of(Repair(services.board).check(specs))


def _with_heartbeats(context: api.Context, specs: Iterable[TargetSpec]) -> Iterator[TargetSpec]:
    for page in batched(specs, _PAGE):
        context.heartbeat()
        yield from page


def _letters(context: api.Context) -> dict[str, int]:
    """Numbers of parked targets, of dead letters, and of parked targets without one."""
    services = context.services
    parked = 0
    missing = 0
    for page in batched(services.board.parked(), _PAGE):
        context.heartbeat()
        ids = [target_id for target_id, _ in page]
        parked += len(ids)
        missing += len(ids) - len(dead_letter_rows.known(services.engine, ids))
    letters = dead_letter_rows.count(services.engine, Wanted())
    return {"parked": parked, "dead_letters": letters, "parked_without_letter": missing}
