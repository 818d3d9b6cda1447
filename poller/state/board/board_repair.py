"""Checks that every target is in exactly one place, and repairs a damaged board."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from poller.domain.batched import batched
from poller.domain.inventory.poll_target import TargetSpec
from poller.domain.record import target_status
from poller.domain.record.overview import State
from poller.state.board import record_formats
from poller.state.board.board_reader import BoardReader
from poller.state.redis_client import store_errors

_CHUNK = 500
_SCAN_COUNT = 5_000
_UNKNOWN = target_status.LETTERS[State.UNKNOWN]


@dataclass(slots=True)
class Report:
    """Damage of the board. `pending` edits, which the leader has not placed yet, are no damage."""

    lost: list[int] = field(default_factory=list)  # in no place
    doubled: list[int] = field(default_factory=list)  # in more than one place
    strays: list[int] = field(default_factory=list)  # on the board, but not in the inventory
    unreadable: list[int] = field(default_factory=list)  # the spec on the board is damaged
    pending: int = 0

    @property
    def sound(self) -> bool:
        """Whether the board has no damage."""
        return not (self.lost or self.doubled or self.strays or self.unreadable)


@dataclass(slots=True)
class Repaired:
    """Repaired targets by damage, and the number of repaired sums.

    The damages are lost, doubled, misplaced, stray and unreadable.
    """

    targets: dict[str, list[int]] = field(default_factory=dict)
    sums: int = 0


class Repair:
    """Check and repair of a board. Every method raises StoreError.

    `counting` is the same board with a client that waits longer, for the script that counts all.
    """

    def __init__(self, board: BoardReader, counting: BoardReader | None = None) -> None:
        self._board = board
        self._counting = counting or board
        self._redis = board.redis
        self._keys = board.keys

    def check(self, specs: Iterable[TargetSpec]) -> Report:
        """Compare the board with every target of the inventory."""
        version = self._board.version() or 0
        strays = self.members()
        report = Report()
        for chunk in batched(specs, _CHUNK):
            pending = []
            placed = []
            for spec in chunk:
                if spec.version > version:
                    pending.append(spec.id)
                elif spec.enabled:
                    placed.append(spec.id)

            report.pending += len(pending)
            strays.difference_update(placed, pending)
            self._check_places(placed, report)

        report.strays = sorted(strays)
        return report

    def repair(
        self, specs: Iterable[TargetSpec], version: int, place_at: Callable[[TargetSpec], int]
    ) -> Repaired:
        """Repair all damage and report it. `specs` is the inventory at `version`.

        Safe beside a working leader. `place_at` is the instant at which a lost target is due.
        """
        strays = self.members()
        repaired = Repaired()
        for chunk in batched(specs, _CHUNK):
            strays.difference_update(spec.id for spec in chunk)
            rows = []
            for spec in chunk:
                rows.append((spec.id, version, record_formats.pack_spec(spec), place_at(spec)))

            self._repair_rows(rows, repaired)

        for ids in batched(sorted(strays), _CHUNK):
            self._repair_rows([(target_id, version, "", 0) for target_id in ids], repaired)

        repaired.sums = self.recount()
        return repaired

    def recount(self) -> int:
        """Make the sums and the list of unwell targets anew. Returns the number of wrong ones."""
        return int(self._counting.scripts.run("recount", []))

    def members(self) -> set[int]:
        """Every target that is in any place or record of the board."""
        ids = set()
        with store_errors(self._redis):
            for member in self._members():
                if member.isdigit():
                    ids.add(int(member))

        return ids

    def _members(self) -> Iterator[str]:
        specs: Any = self._redis.hscan_iter(self._keys.spec, count=_SCAN_COUNT)
        for member, _ in specs:
            yield member

        yield from self._redis.hscan_iter(self._keys.marks, count=_SCAN_COUNT, no_values=True)

        places = [self._keys.parked, self._keys.held]
        for queue in self._board.queues():
            places.append(self._keys.due(queue))
            places.append(self._keys.urgent(queue))

        for place in places:
            rows: Any = self._redis.zscan_iter(place, count=_SCAN_COUNT)
            for member, _ in rows:
                yield member

    def _check_places(self, ids: Sequence[int], report: Report) -> None:
        if not ids:
            return
        places = self._board.check(ids)
        report.lost += places.lost
        report.doubled += places.doubled

        specs = self._board.specs(ids)
        for target_id, text in zip(ids, specs, strict=True):
            if text and record_formats.parse_spec(text) is None:
                report.unreadable.append(target_id)

    def _repair_rows(self, rows: Sequence[tuple[int, int, str, int]], repaired: Repaired) -> None:
        """Repair targets; a row is (id, version, spec, instant)."""
        arguments = [_UNKNOWN, *chain.from_iterable(rows)]
        damages = self._board.scripts.run("repair", arguments)

        for row, damage in zip(rows, damages, strict=True):
            target_id = row[0]
            for word in damage.split():
                targets = repaired.targets.setdefault(word, [])
                targets.append(target_id)
