"""The board: every enabled target is in exactly one place - due, urgent, in flight, parked or held.

Each move is one Lua script, so no crash, lost reply, duplicate message or second leader can put a
target in two places or none. The caller decides where a target goes; the board only moves it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from poller.domain.batched import batched
from poller.domain.failures.outcome import Result
from poller.domain.inventory.poll_target import TargetSpec
from poller.domain.record import target_status
from poller.domain.record.event_kinds import Event
from poller.domain.record.overview import State
from poller.state.board import record_formats
from poller.state.board.board_reader import BoardReader
from poller.state.board.board_values import (
    Claim,
    Claimed,
    ClaimLimits,
    Demand,
    Finished,
    MarkChange,
    Move,
    Place,
    Placed,
    Reaped,
    Removal,
    Report,
    Start,
    Started,
)
from poller.state.keys import ROUTINE_MARK, SLICE_MS
from poller.state.redis_client import store_errors

STATS_LIFETIME_S = 3600
EVENTS_LENGTH = 10_000
#: Dead letters that one requeue makes due together, as many as one batch. Later ones are spread:
#: a common cause of their failure should not meet all of them at the same time.
REQUEUE_AT_ONCE = 64
REQUEUE_EVERY_MS = 1_000
_CHUNK = 500
#: The score of a target that an operator wants polled at once.
_AT_ONCE = 1
_UNKNOWN = target_status.LETTERS[State.UNKNOWN]
#: The letter before an instant names the place in the arguments of `finish`.
_PLACE_LETTERS = {Place.DUE: "", Place.URGENT: "u", Place.PARKED: "p"}


class Board(BoardReader):
    """The moves on the way of a poll.

    Every method raises StoreError. A method with the token of the leader raises NotLeader.
    """

    def place(
        self,
        leader: str,
        changes: Iterable[tuple[TargetSpec, int] | Removal],
        version: int,
        since: str = "*",
    ) -> Placed:
        """Bring the board up to the inventory. A new target is due at the instant beside its spec.

        `since` is the version of the board that the changes were read for ("" for a new board, "*"
        for any); the board refuses a late call by it. The last chunk stores `version`, so a pass
        that was cut short starts again.
        """
        placed = changed = removed = 0
        for chunk in batched(changes, _CHUNK):
            arguments: list[Any] = [since, "", _UNKNOWN]
            for change in chunk:
                if isinstance(change, Removal):
                    arguments += (change.id, "", 0)
                else:
                    spec, at_ms = change
                    arguments += (spec.id, record_formats.pack_spec(spec), at_ms)

            counts = self.scripts.run_as_leader("place", leader, arguments)
            placed += counts[0]
            changed += counts[1]
            removed += counts[2]

        self.scripts.run_as_leader("place", leader, [since, version, _UNKNOWN])
        return Placed(placed, changed, removed)

    def claim(
        self,
        leader: str,
        token: str,
        published: str,
        queues: Mapping[str, int],
        limits: ClaimLimits,
        now_ms: int | None = None,
    ) -> Claim:
        """Move due targets in flight under a fresh token: urgent ones first, then the oldest.

        `queues` holds the number of batches that may wait in each queue; the other targets stay
        due. `published` is the token of the last claim whose batches were published.
        """
        arguments: list[Any] = [
            _text(now_ms),
            limits.lease_ms,
            published,
            token,
            limits.targets,
            ROUTINE_MARK,
        ]
        for queue, batches in queues.items():
            arguments += (queue, batches, limits.size_of(queue))

        reply = self.scripts.run_as_leader("claim", leader, arguments)
        now, claimed, repeated, *rows = reply
        parts = []
        for queue, urgent, ids in batched(rows, 3):
            parts.append(Claimed(queue, urgent == 1, ids))

        return Claim(
            now_ms=int(now),
            token=claimed,
            repeated=repeated == 1,
            parts=parts,
        )

    def start(
        self,
        token: str,
        attempt: int,
        call: str,
        margin_ms: int,
        ids: Sequence[int],
        now_ms: int | None = None,
    ) -> Start:
        """Confirm the runs of a batch before polling, and set their leases."""
        arguments = [_text(now_ms), token, attempt, call, margin_ms, *ids]
        sent_mono = time.monotonic()
        reply = self.scripts.run("start", arguments)
        read_mono = time.monotonic()
        now, overdue, runs, specs, statuses, refused, postponed, rules_version, marked = reply

        refusals = _refusals(refused)
        postponed_ids = set(map(int, postponed))
        marks = {int(target_id): text for target_id, text in batched(marked, 2)}
        targets = []
        for target_id, run, spec, status in zip(ids, runs, specs, statuses, strict=True):
            if target_id in refusals or not run or not spec:
                result = refusals.get(target_id, Result.OK)
                started = Started(target_id, result, 0, 0, "", target_status.Status())
            else:
                started = _started(target_id, run, spec, status, int(now))
                if target_id in postponed_ids:
                    started = started._replace(postponed=True)
                if target_id in marks:
                    started = started._replace(marks=marks[target_id])
            targets.append(started)

        queue = next((target.queue for target in targets if target.queue), "")
        return Start(
            now_ms=int(now),
            queue=queue,
            overdue=int(overdue),
            targets=targets,
            read_mono=read_mono,
            offset_ms=self.clock.record(int(now), sent_mono, read_mono),
            rules_version=int(rules_version) if rules_version.isdigit() else 0,
        )

    def hold(
        self, token: str, lease_ms: int, ids: Sequence[int], now_ms: int | None = None
    ) -> dict[int, Result]:
        """Confirm that runs are still under this token; discard the results of STALE and GONE ones.

        The other leases are extended to `lease_ms` from now if they end earlier; 0 keeps them.
        """
        arguments = [_text(now_ms), token, lease_ms, *ids]
        refused = self.scripts.run("hold", arguments)
        refusals = _refusals(refused)

        results = {}
        for target_id in ids:
            results[target_id] = refusals.get(target_id, Result.OK)
        return results

    def finish(
        self,
        token: str,
        moves: Sequence[Move],
        *,
        stats: Mapping[str, int] | None = None,
        errors: Sequence[str] = (),
        now_ms: int | None = None,
        believed_ms: int | None = None,
        queue: str = "",
        reports: Sequence[Report] = (),
        events_length: int = EVENTS_LENGTH,
        marks: Sequence[MarkChange] = (),
    ) -> Finished:
        """Move targets to their next place, together with their status, statistics and error texts.

        `believed_ms` is the clock that chose the next instants; if the board's clock was set
        since, the instants follow it. `queue` is the queue of the steady targets. The stream of
        events keeps about `events_length` entries. `marks` holds changes only.
        """
        steady = [move for move in moves if move.steady]
        others = [move for move in moves if not move.steady]
        arguments: list[Any] = [
            _text(now_ms),
            _text(believed_ms),
            token,
            SLICE_MS,
            STATS_LIFETIME_S,
            queue,
            len(steady),
            len(moves),
        ]
        for move in steady:
            arguments += (move.id, move.next_ms, move.status)

        for move in others:
            next_place = f"{_PLACE_LETTERS[move.place]}{move.next_ms}"
            arguments += (move.id, next_place, move.status)

        arguments += (len(errors), *errors)
        arguments += (len(reports), events_length)
        for report in reports:
            arguments += record_formats.report_arguments(report)
        arguments.append(len(marks))
        for mark in marks:
            arguments += (mark.target_id, mark.text, int(mark.is_news))
        arguments += chain.from_iterable((stats or {}).items())

        refused, published = self.scripts.run("finish", arguments)
        refusals = _refusals(refused)
        return Finished(
            results=[refusals.get(move.id, Result.OK) for move in moves],
            events=_published(published, reports),
        )

    def count(self, stats: Mapping[str, int]) -> None:
        """Add to the statistics of the current slice and to the totals."""
        arguments: list[Any] = ["", SLICE_MS, STATS_LIFETIME_S]
        arguments += chain.from_iterable(stats.items())
        self.scripts.run("count", arguments)

    def reap(self, leader: str, limit: int = 1000, now_ms: int | None = None) -> list[Reaped]:
        """Move targets whose lease ran out to due, at once."""
        reply = self.scripts.run_as_leader("reap", leader, [_text(now_ms), limit, ""])
        return reaped(reply)

    def unpark(self, leader: str, now_ms: int, limit: int = 1000) -> int:
        """Move dead letters whose slow retry is due from parked to due. Returns how many."""
        moved = self.scripts.run_as_leader("unpark", leader, [now_ms, limit, ""])
        return int(moved)

    def withhold(self, leader: str, site: int, ids: Iterable[int]) -> int:
        """Move waiting targets of a dark site to held. Returns how many moved."""
        moved = 0
        for chunk in batched(ids, _CHUNK):
            arguments = [site, *chunk]
            moved += self.scripts.run_as_leader("withhold", leader, arguments)

        return moved

    def release(
        self, leader: str, rows: Iterable[tuple[int, int]], place: Place = Place.DUE
    ) -> int:
        """Move held targets back to a waiting place. Returns how many moved.

        A row is (target id, instant).
        """
        moved = 0
        for chunk in batched(rows, _CHUNK):
            arguments = [place.value, *chain.from_iterable(chunk)]
            moved += self.scripts.run_as_leader("release", leader, arguments)

        return moved

    def demand(self, ids: Sequence[int]) -> Demand:
        """Make targets urgent at once, because an operator or a trap wants a poll."""
        now, *places = self.scripts.run("demand", ids)
        self.wake("demand")

        by_target = dict(zip(ids, places, strict=True))
        return Demand(int(now), by_target)

    def requeue(self, ids: Sequence[int], now_ms: int) -> dict[int, str]:
        """Make dead letters urgent: the first ones at once, the others spread over seconds.

        Returns `due`, `inflight`, `opened` (by hand) or `gone` for each.
        """
        places: list[str] = []
        instants = _requeue_instants(len(ids), now_ms)
        pairs = zip(ids, instants, strict=True)
        for chunk in batched(pairs, _CHUNK):
            arguments = [now_ms, *chain.from_iterable(chunk)]
            places += self.scripts.run("requeue", arguments)

        self.wake("demand")
        return dict(zip(ids, places, strict=True))

    def wake(self, reason: str) -> None:
        """Publish a reason to wake the leader. A lost message only costs time."""
        with store_errors(self.redis):
            self.redis.publish(self.keys.wake, reason)


def reaped(reply: Sequence[Any]) -> list[Reaped]:
    """The targets in the reply of the script `reap`."""
    _, *rows = reply
    targets = []
    for target_id, token, plan, attempts in batched(rows, 4):
        target = Reaped(
            id=int(target_id),
            token=token,
            plan_ms=int(plan or 0),
            attempts=int(attempts),
        )
        targets.append(target)

    return targets


def requeue_spread_ms(count: int) -> int:
    """The time until the last of this many requeued dead letters is due."""
    return max(0, count - 1) // REQUEUE_AT_ONCE * REQUEUE_EVERY_MS


def _requeue_instants(count: int, now_ms: int) -> list[int]:
    instants = []
    for number in range(count):
        batch = number // REQUEUE_AT_ONCE
        if batch == 0:
            instants.append(_AT_ONCE)
        else:
            instants.append(now_ms + batch * REQUEUE_EVERY_MS)

    return instants


def _started(target_id: int, run: str, spec: str, status: str | None, now_ms: int) -> Started:
    """The reply for a target that `start` accepted."""
    version, queue = record_formats.version_and_queue(spec)
    plan_ms = record_formats.plan_ms(run)
    return Started(
        target_id,
        Result.OK,
        now_ms if plan_ms is None else plan_ms,
        version,
        queue,
        target_status.unpack(status or ""),
    )


def _published(pairs: Sequence[str], reports: Sequence[Report]) -> list[Event]:
    """The events that the script published, from pairs of a report's number and a field of it."""
    events = []
    for number, name in batched(pairs, 2):
        events.append(getattr(reports[int(number) - 1], name))

    return events


def _refusals(pairs: Sequence[str]) -> dict[int, Result]:
    """The reason by target, from the flat list of a script."""
    refusals = {}
    for target_id, reason in batched(pairs, 2):
        refusals[int(target_id)] = Result(reason)

    return refusals


def _text(now_ms: int | None) -> str:
    """An instant as argument of a script; "" stands for the server's clock."""
    return "" if now_ms is None else str(now_ms)
