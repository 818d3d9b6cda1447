"""Is every target in exactly one place, and if not, put it there. For people: the board does this by construction."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any

from redis.commands.core import Script

from poller.domain.batched import batched
from poller.domain.inventory.poll_target import TargetSpec
from poller.domain.record import target_status
from poller.domain.record.overview import State
from poller.state.board import lua_scripts
from poller.state.board.moves import Board, packed
from poller.state.redis_client import store_errors

_CHUNK = 500
SPEC = re.compile(r"\d+\|\d+\|\d+\|.+")
_UNKNOWN = target_status.LETTERS[State.UNKNOWN]


@dataclass(slots=True)
class Report:
    """What is wrong with the board. `pending` is not: edits that the leader has not brought to the board yet."""

    lost: list[int] = field(default_factory=list)  # in no place
    doubled: list[int] = field(default_factory=list)  # in more than one
    strays: list[int] = field(default_factory=list)  # on the board, but not in the inventory
    unreadable: list[int] = field(default_factory=list)  # the board's notes on it are damaged
    pending: int = 0

    @property
    def sound(self) -> bool:
        return not (self.lost or self.doubled or self.strays or self.unreadable)


@dataclass(slots=True)
class Repaired:
    """What was wrong with which targets (lost, doubled, misplaced, stray, unreadable), and how many sums were."""

    targets: dict[str, list[int]] = field(default_factory=dict)
    sums: int = 0


class Repair:
    def __init__(self, board: Board) -> None:
        self._board = board
        self.redis = board.redis
        self.keys = board.keys

    def check(self, specs: Iterable[TargetSpec]) -> Report:
        """Compare the board with every target of the inventory."""
        known = self._board.version() or 0
        report = Report()
        strays = self.members()
        for chunk in batched(specs, _CHUNK):
            settled = [spec.id for spec in chunk if spec.enabled and spec.version <= known]
            pending = {spec.id for spec in chunk if spec.version > known}
            report.pending += len(pending)
            strays.difference_update(settled, pending)
            self._look(settled, report)
        report.strays = sorted(strays)
        return report

    def _look(self, ids: Sequence[int], report: Report) -> None:
        places = self._board.check(ids)
        report.lost += places.lost
        report.doubled += places.doubled
        with store_errors(self.redis):
            texts: Any = self.redis.hmget(self.keys.spec, [str(i) for i in ids]) if ids else []
        report.unreadable += [
            i for i, text in zip(ids, texts, strict=True) if text and not SPEC.fullmatch(text)
        ]

    def repair(
        self, specs: Iterable[TargetSpec], version: int, place_at: Callable[[TargetSpec], int]
    ) -> Repaired:
        """Put everything right and say what was wrong. `specs` is the inventory at `version`. Safe beside a leader."""
        strays = self.members()
        done = Repaired()
        for chunk in batched(specs, _CHUNK):
            strays.difference_update(spec.id for spec in chunk)
            self._mend([(spec.id, version, packed(spec), place_at(spec)) for spec in chunk], done)
        for ids in batched(sorted(strays), _CHUNK):
            self._mend([(target_id, version, "", 0) for target_id in ids], done)
        done.sums = int(self._run("recount", []))
        return done

    def _mend(self, rows: Sequence[tuple[int, int, str, int]], done: Repaired) -> None:
        answers = self._run("repair", [_UNKNOWN, *chain.from_iterable(rows)])
        for row, wrong in zip(rows, answers, strict=True):
            for word in wrong.split():
                done.targets.setdefault(word, []).append(row[0])

    def members(self) -> set[int]:
        """Every target that is anywhere on the board."""
        with store_errors(self.redis):
            return {int(text) for text in self._members() if str(text).isdigit()}

    def _members(self) -> Iterator[Any]:
        yield from (key for key, _ in self.redis.hscan_iter(self.keys.spec, count=5000))
        queues = [str(queue) for queue in self.redis.smembers(self.keys.queues)]
        waiting = (key(queue) for queue in queues for key in (self.keys.due, self.keys.urgent))
        for place in (self.keys.parked, self.keys.held, *waiting):
            yield from (member for member, _ in self.redis.zscan_iter(place, count=5000))

    def _run(self, name: str, arguments: Sequence[Any]) -> Any:
        with store_errors(self.redis):
            return self._scripts[name](keys=[self.keys.prefix], args=arguments)

    @cached_property
    def _scripts(self) -> dict[str, Script]:
        return lua_scripts.load(self.redis, ("repair", "recount"))
