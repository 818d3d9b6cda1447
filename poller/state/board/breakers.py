"""Breakers as operators use them: list, show, reset, open by hand. Workers trip and close them.

An opening by hand is a record of its own, in `opened`: no poll in flight, no edit and no lost lease
removes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from poller.domain.batched import batched
from poller.domain.failures import circuit_breaker
from poller.domain.failures.circuit_breaker import BreakerState
from poller.domain.record import target_status
from poller.domain.record.target_status import Status
from poller.domain.scheduling import slots
from poller.state.board import failing_targets, record_formats
from poller.state.board.board_reader import BoardReader
from poller.state.board.record_formats import FIRST_INSTANT_MS, Opening, Spec
from poller.state.board.unwell_targets import UnwellTargets
from poller.state.redis_client import store_errors

_CHUNK = 200
_SCAN_COUNT = 2_000
#: Above this number a scan of all targets costs less than to name those that are unwell.
_MOST_UNWELL = 200_000
#: A status can change between our read and our move. Five attempts are enough for a target that is
#: polled once a second.
_RESET_ATTEMPTS = 5
_PLACES = ("due", "urgent", "parked", "held", "in_flight")
#: Places whose score is the next instant of the target.
_TIMED_PLACES = ("due", "urgent", "parked")


@dataclass(frozen=True, slots=True)
class BoardTarget:
    """A target as it stands on the board: its status, its breaker and its place."""

    id: int
    interval_ms: int
    status: Status
    text: str  # the status as it is stored
    opening: Opening | None = None
    place: str = ""  # due, urgent, in_flight, parked or held
    next_ms: int = 0  # instant of the next poll; 0: unknown, or at once
    queue: str = ""

    def breaker_state(self, now_ms: int) -> BreakerState:
        """The state of the breaker; open while an operator keeps it open."""
        if self.opening:
            return BreakerState.OPEN
        return circuit_breaker.state_at(self.status.breaker, now_ms)

    @property
    def since_ms(self) -> int:
        """The instant at which the breaker opened; 0 when it is closed."""
        return self.opening.since_ms if self.opening else self.status.breaker.since_ms

    @property
    def is_open(self) -> bool:
        """Whether failures or an operator opened the breaker."""
        return bool(self.opening or self.status.breaker.trips)

    @property
    def is_well(self) -> bool:
        """Whether a reset has nothing to do."""
        return not self.is_open and not self.status.failures


class OpenBreaker(NamedTuple):
    """An open breaker. The order of these values is that of the list: the longest open first."""

    since_ms: int
    target_id: int
    by_hand: bool


class Breakers:
    """The breakers of the board. Every method raises StoreError."""

    def __init__(self, board: BoardReader) -> None:
        self._board = board
        self._redis = board.redis
        self._keys = board.keys
        self._scripts = board.scripts

    def list_open(self, now_ms: int) -> Iterator[OpenBreaker]:
        """Every open breaker, in no order. Only what a page is chosen by is read of each status.

        A target may come twice while the fleet grows.
        """
        openings = self.openings(now_ms)
        for statuses in self._candidates(openings):
            for target_id, text in statuses.items():
                opening = openings.get(target_id)
                since_ms = opening.since_ms if opening else target_status.open_since_ms(text)
                if since_ms is not None:
                    yield OpenBreaker(since_ms, target_id, opening is not None)

    def _candidates(self, openings: Mapping[int, Opening]) -> Iterator[dict[int, str]]:
        """The statuses of targets that may have an open breaker: those that are not ok, and those
        opened by hand. All targets if the list of unwell ones cannot be used, or is long.
        """
        unwell = UnwellTargets(self._board)
        ids = unwell.ids(_MOST_UNWELL)
        if ids is None:
            yield from failing_targets.status_pages(self._redis, self._keys)
            return
        for chunk in batched(sorted({*ids, *openings}), _SCAN_COUNT):
            yield unwell.statuses(chunk)

    def show(self, ids: Sequence[int], now_ms: int) -> dict[int, BoardTarget]:
        """Return these targets with their breakers, without targets that are not on the board."""
        targets: dict[int, BoardTarget] = {}
        for chunk in batched(ids, _CHUNK):
            for target in self._read(chunk, now_ms):
                targets[target.id] = target

        return targets

    def reset(self, ids: Sequence[int], now_ms: int) -> dict[int, str]:
        """Close breakers and forget their failures.

        Returns `due`, `inflight`, `held`, `closed` (already), `changed` or `gone` for each.
        """
        results: dict[int, str] = dict.fromkeys(ids, "changed")
        for _ in range(_RESET_ATTEMPTS):
            remaining = [target_id for target_id in ids if results[target_id] == "changed"]
            targets = self.show(remaining, now_ms)
            for target_id in remaining:
                if target_id not in targets:
                    results[target_id] = "gone"
                elif targets[target_id].is_well:
                    results[target_id] = "closed"

            unwell = [target for target in targets.values() if not target.is_well]
            if not unwell:
                break
            results |= self._reset(unwell, now_ms)

        return results

    def open(self, ids: Sequence[int], opening: Opening) -> dict[int, str]:
        """Open breakers by hand: until then, only a demand polls the targets.

        Returns `opened`, `inflight` or `gone` for each.
        """
        results: dict[int, str] = {}
        for chunk in batched(ids, _CHUNK):
            arguments = [opening.until_ms, opening.pack(), *chunk]
            words = self._scripts.run("open", arguments)
            results.update(zip(chunk, words, strict=True))

        return results

    def _reset(self, targets: Sequence[BoardTarget], now_ms: int) -> dict[int, str]:
        results: dict[int, str] = {}
        for chunk in batched(targets, _CHUNK):
            ids = [target.id for target in chunk]
            arguments: list[Any] = []
            for target in chunk:
                closed_text = _closed_text(target)
                slot_ms = slots.next_slot_ms(target.id, target.interval_ms, now_ms)
                arguments += (target.id, target.text, closed_text, slot_ms)

            words = self._scripts.run("reset", arguments)
            results.update(zip(ids, words, strict=True))

        return results

    def _read(self, ids: Sequence[int], now_ms: int) -> Iterator[BoardTarget]:
        keys = self._keys
        specs = self._specs(ids)
        if not specs:
            return

        members = [str(target_id) for target_id in specs]
        by_queue: dict[str, list[str]] = {}
        for target_id, spec in specs.items():
            by_queue.setdefault(spec.queue, []).append(str(target_id))

        pipe = self._redis.pipeline(transaction=False)
        pipe.hmget(keys.status, members)
        pipe.hmget(keys.opened, members)
        for place in (keys.parked, keys.held, keys.inflight):
            pipe.zmscore(place, members)
        for queue, waiting_here in by_queue.items():
            pipe.zmscore(keys.due(queue), waiting_here)
            pipe.zmscore(keys.urgent(queue), waiting_here)

        with store_errors(self._redis):
            texts, openings, parked, held, in_flight, *waiting = pipe.execute()

        due_and_urgent: dict[str, tuple[float | None, float | None]] = {}
        queues = zip(by_queue.values(), batched(waiting, 2), strict=True)
        for waiting_here, (due, urgent) in queues:
            due_and_urgent.update(zip(waiting_here, zip(due, urgent, strict=True), strict=True))
        scores = [
            (*due_and_urgent[member], *others)  # as in _PLACES
            for member, *others in zip(members, parked, held, in_flight, strict=True)
        ]
        rows = zip(specs.items(), texts, openings, scores, strict=True)
        for (target_id, spec), text, opening, target_scores in rows:
            place, next_ms = _place(target_scores)
            yield BoardTarget(
                id=target_id,
                interval_ms=spec.interval_ms,
                status=target_status.unpack(text or ""),
                text=text or "",
                opening=record_formats.parse_opening(opening, now_ms),
                place=place,
                next_ms=next_ms,
                queue=spec.queue,
            )

    def openings(self, now_ms: int) -> Mapping[int, Opening]:
        """Return the targets whose breaker an operator keeps open."""
        openings = {}
        with store_errors(self._redis):
            rows = self._redis.hscan_iter(self._keys.opened, count=_SCAN_COUNT)
            for member, text in rows:
                opening = record_formats.parse_opening(text, now_ms)
                if opening and member.isdigit():
                    openings[int(member)] = opening

        return openings

    def openings_of(self, ids: Sequence[int], now_ms: int) -> set[int]:
        """Return the ones of these targets whose breaker an operator keeps open."""
        opened = set()
        for chunk in batched(ids, _CHUNK):
            with store_errors(self._redis):
                texts: Any = self._redis.hmget(self._keys.opened, [str(each) for each in chunk])
            for target_id, text in zip(chunk, texts, strict=True):
                if record_formats.parse_opening(text, now_ms):
                    opened.add(target_id)
        return opened

    def count_openings(self) -> int:
        """Return the number of records of openings by hand, of which some may be over."""
        with store_errors(self._redis):
            return int(self._redis.hlen(self._keys.opened))

    def _specs(self, ids: Sequence[int]) -> dict[int, Spec]:
        texts = self._board.specs(ids)

        specs = {}
        for target_id, text in zip(ids, texts, strict=True):
            spec = record_formats.parse_spec(text)
            if spec:
                specs[target_id] = spec

        return specs


def _place(scores: Sequence[float | None]) -> tuple[str, int]:
    """The place of a target and the instant of its next poll."""
    for place, score in zip(_PLACES, scores, strict=True):
        if score is None:
            continue
        if place in _TIMED_PLACES and score >= FIRST_INSTANT_MS:
            return place, int(score)
        return place, 0

    return "", 0


def _closed_text(target: BoardTarget) -> str:
    """The status text after a reset. It keeps the last poll; a damaged text stays as it is."""
    if not target.status.run_ms:
        return target.text
    closed = target.status._replace(breaker=circuit_breaker.CLOSED, failures=0, confirmed=False)
    return closed.pack()
