"""The board: every enabled target is in exactly one place - due, in flight or parked.

Each method is one Lua script, so no crash, lost reply, duplicate message or second leader can put a
target in two places or none. What happens to a target is decided elsewhere; here it only moves.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import redis
from redis.commands.core import Script

from poller.domain.batched import batched
from poller.domain.failures.outcome import Result
from poller.domain.inventory.poll_target import TargetSpec
from poller.domain.record import target_status
from poller.domain.record.overview import State
from poller.state.board import lua_scripts
from poller.state.board.board_values import (
    Check,
    Claim,
    Claimed,
    ClaimLimits,
    Move,
    NotLeader,
    Place,
    Reaped,
    Start,
    Started,
    Waiting,
)
from poller.state.keys import Keys
from poller.state.redis_client import store_errors

SLICE_MS = 10_000
STATS_LIFETIME_S = 3600
#: Celery's message priorities: on Redis the lower number goes first, and each has a list of its own.
URGENT_PRIORITY, ROUTINE_PRIORITY = 0, 5
#: How kombu names the list of a queue's messages of that priority.
ROUTINE_MARK = f"\x06\x16{ROUTINE_PRIORITY}"
#: No probe and no slow retry is further ahead than this; what seems to be was placed by another clock.
LONGEST_PROBE_MS, LONGEST_PARK_MS = 3_600_000, 24 * 3_600_000
_CHUNK = 500


class Board:
    def __init__(self, client: redis.Redis, keys: Keys) -> None:
        self.redis = client
        self.keys = keys

    def claim(
        self,
        leader: str,
        token: str,
        published: str,
        queues: Mapping[str, int],
        room: ClaimLimits,
        now_ms: int | None = None,
    ) -> Claim:
        """Move due targets in flight under a fresh token, urgent ones first, then the oldest.

        `queues` says how many batches may wait in each; whatever finds no room stays due.
        """
        triples = [
            word
            for queue, batches in queues.items()
            for word in (queue, batches, room.size_of(queue))
        ]
        arguments = [
            leader,
            _ms(now_ms),
            room.lease_ms,
            published,
            token,
            room.targets,
            ROUTINE_MARK,
            *triples,
        ]
        now, claimed, again, *rest = _led(self._run("claim", arguments))
        parts = [Claimed(queue, bool(int(urgent)), ids) for queue, urgent, ids in batched(rest, 3)]
        return Claim(int(now), claimed, bool(int(again)), parts)

    def start(
        self,
        token: str,
        attempt: int,
        call: str,
        margin_ms: int,
        ids: Sequence[int],
        now_ms: int | None = None,
    ) -> Start:
        """Confirm runs before polling: one answer for each id."""
        arguments = [_ms(now_ms), token, attempt, call, margin_ms, *ids]
        now, overdue, runs, specs, statuses, refused, waited = self._run("start", arguments)
        verdicts = _verdicts(refused)
        kept = set(map(int, waited))
        answers = [
            _answer(
                target_id,
                verdicts.get(target_id, Result.OK),
                run,
                spec,
                text,
                target_id in kept,
                int(now),
            )
            for target_id, run, spec, text in zip(ids, runs, specs, statuses, strict=True)
        ]
        queue = next((answer.queue for answer in answers if answer.queue), "")
        return Start(int(now), queue, int(overdue), answers, time.monotonic())

    def hold(
        self, token: str, lease_ms: int, ids: Sequence[int], now_ms: int | None = None
    ) -> dict[int, Result]:
        """Are these runs still under this token? STALE or GONE: write nothing of it.

        The leases of the others are prolonged if they end earlier than `lease_ms` from now; 0 leaves them as they are.
        """
        refused = _verdicts(self._run("hold", [_ms(now_ms), token, lease_ms, *ids]))
        return {target_id: refused.get(target_id, Result.OK) for target_id in ids}

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
    ) -> list[Result]:
        """Move targets to their next place, together with their status, statistics and error texts.

        `believed_ms` is the clock by which the next instants were chosen: if the board's was set since, they follow.
        `queue` is where the steady ones wait.
        """
        steady = [move for move in moves if move.steady]
        others = [move for move in moves if not move.steady]
        rows = [word for move in steady for word in (move.id, move.next_ms, move.status)]
        rows += [
            word
            for move in others
            for word in (move.id, f"{_KINDS[move.place]}{move.next_ms}", move.status)
        ]
        pairs = [word for pair in (stats or {}).items() for word in pair]
        arguments = [
            _ms(now_ms),
            _ms(believed_ms),
            token,
            SLICE_MS,
            STATS_LIFETIME_S,
            queue,
            len(steady),
            len(moves),
            *rows,
            len(errors),
            *errors,
            *pairs,
        ]
        refused = _verdicts(self._run("finish", arguments))
        return [refused.get(move.id, Result.OK) for move in moves]

    def count(self, stats: Mapping[str, int]) -> None:
        """Add to the statistics of the current slice and to the totals."""
        self.finish("", [], stats=stats)

    def reap(self, leader: str, limit: int = 1000, now_ms: int | None = None) -> list[Reaped]:
        """Bring back targets whose lease ran out; they are due at once."""
        _, *rest = _led(self._run("reap", [leader, _ms(now_ms), limit]))
        return [
            Reaped(int(i), token, int(plan or 0), int(n)) for i, token, plan, n in batched(rest, 4)
        ]

    def unpark(self, leader: str, now_ms: int, limit: int = 1000) -> int:
        """Dead letters whose slow retry is due wait for a poll again. Returns how many."""
        return int(_led([self._run("unpark", [leader, now_ms, limit])])[0])

    def withhold(self, leader: str, site: int, ids: Iterable[int]) -> int:
        """Targets of a dark site wait aside. Returns how many moved."""
        return sum(
            int(_led([self._run("withhold", [leader, site, *chunk])])[0])
            for chunk in batched(ids, _CHUNK)
        )

    def release(
        self, leader: str, rows: Iterable[tuple[int, int]], place: Place = Place.DUE
    ) -> int:
        """Held targets wait for a poll again, each at its instant. Returns how many moved."""
        return sum(
            int(
                _led(
                    [
                        self._run(
                            "release", [leader, place.value, *(w for row in chunk for w in row)]
                        )
                    ]
                )[0]
            )
            for chunk in batched(rows, _CHUNK)
        )

    def held(self, site: int) -> set[int]:
        """Targets that wait for a site."""
        with store_errors(self.redis):
            rows: Any = self.redis.zrange(self.keys.held, site, site, byscore=True)
        return {int(row) for row in rows}

    def sizes(self) -> tuple[int, int, int]:
        """How many targets the board knows, how many wait (due, urgent, parked, held), and how many are in flight."""
        queues = self.queues()
        with store_errors(self.redis):
            pipe = self.redis.pipeline(transaction=True)
            pipe.hlen(self.keys.spec)
            pipe.zcard(self.keys.inflight)
            for place in (
                self.keys.parked,
                self.keys.held,
                *map(self.keys.due, queues),
                *map(self.keys.urgent, queues),
            ):
                pipe.zcard(place)
            known, in_flight, *waiting = pipe.execute()
        return int(known), sum(waiting), int(in_flight)

    def all_held(self) -> dict[int, int]:
        """Every target that waits for a site, with the site's number."""
        with store_errors(self.redis):
            rows: Any = self.redis.zrange(self.keys.held, 0, -1, withscores=True)
        return {int(i): _whole(number) for i, number in rows if str(i).isdigit()}

    def place(
        self, leader: str, specs: Iterable[tuple[TargetSpec, int]], version: int, since: str = "*"
    ) -> tuple[int, int, int]:
        """Make the board agree with specs, each with the instant a new one falls due.

        `since` is the version of the board they were made for ("" for none): a late packet is refused by it.

        Returns how many were (placed, changed, removed). The version is noted with the last chunk, so a
        pass that is cut short is simply done again.
        """
        totals = [0, 0, 0]
        for chunk in batched(specs, _CHUNK):
            words = [word for spec, at_ms in chunk for word in (spec.id, packed(spec), at_ms)]
            done = _led(self._run("place", [leader, since, "", _UNKNOWN, *words]))
            totals = [a + int(b) for a, b in zip(totals, done, strict=True)]
        _led(self._run("place", [leader, since, version, _UNKNOWN]))
        return totals[0], totals[1], totals[2]

    def waiting(
        self, queue: str, after_ms: int | str, before_ms: int | str, limit: int = 1000
    ) -> list[Waiting]:
        """Targets that wait for a slot in this range (both ends included), the earliest first."""
        with store_errors(self.redis):
            rows: Any = self.redis.zrange(
                self.keys.due(queue),
                after_ms,
                before_ms,
                byscore=True,
                offset=0,
                num=limit,
                withscores=True,
            )
            specs: Any = self.redis.hmget(self.keys.spec, [i for i, _ in rows]) if rows else []
        return [
            Waiting(int(i), _whole(at), _interval_ms(spec))
            for (i, at), spec in zip(rows, specs, strict=True)
            if str(i).isdigit()
        ]

    def respread(self, leader: str, queue: str, moves: Iterable[tuple[int, int, int]]) -> int:
        """Give waiting targets another instant: (id, its score now, its new score). Returns how many moved."""
        words = [word for move in moves for word in move]
        return int(_led([self._run("respread", [leader, queue, *words])])[0])

    def renew_leases(self, leader: str, now_ms: int, queue_wait_ms: int, margin_ms: int) -> int:
        """After a step of the clock: leases nobody could have given are given anew. Returns how many."""
        return int(_led([self._run("leases", [leader, now_ms, queue_wait_ms, margin_ms])])[0])

    def bring_nearer(self, leader: str, now_ms: int, progress: Callable[[], None]) -> int:
        """After the clock was set back: nothing waits longer than it may. Returns how many targets moved."""
        moved = 0
        for place, longest in self._waits():
            cursor = "0"
            while True:
                cursor, more = _led(self._run("early", [leader, now_ms, place, longest, cursor]))
                moved += int(more)
                progress()
                if cursor == "0":
                    break
        return moved

    def _waits(self) -> Iterator[tuple[str, int | str]]:
        for queue in self.queues():
            yield f"due:{queue}", ""
            yield f"urgent:{queue}", LONGEST_PROBE_MS
        yield "parked", LONGEST_PARK_MS

    def demand(self, ids: Sequence[int]) -> tuple[int, dict[int, str]]:
        """Ask for a poll at once. Returns the board's clock and `due`, `inflight` or `gone` for each."""
        now, *rest = self._run("demand", list(ids))
        self.wake("demand")
        return int(now), dict(zip(ids, rest, strict=True))

    def check(self, ids: Iterable[int]) -> Check:
        """Verify the invariant for targets that should be on the board."""
        result = Check()
        for chunk in batched(ids, _CHUNK):
            for target_id, places in zip(chunk, self._run("check", list(chunk)), strict=True):
                if places < 1:
                    result.lost.append(target_id)
                elif places > 1:
                    result.doubled.append(target_id)
        return result

    def statuses(self, ids: Sequence[int]) -> dict[int, target_status.Status]:
        with store_errors(self.redis):
            texts = self.redis.hmget(self.keys.status, [str(i) for i in ids]) if ids else []
        return {
            i: target_status.unpack(str(text)) for i, text in zip(ids, texts, strict=True) if text
        }

    def parked(self) -> Iterator[tuple[int, int]]:
        """Every parked target with the instant of its slow retry, in pages and in no order."""
        with store_errors(self.redis):
            for key, at_ms in self.redis.zscan_iter(self.keys.parked, count=1000):
                yield int(key), int(at_ms)

    def version(self) -> int | None:
        """The inventory version the board agrees with; None when it was never filled, or was flushed."""
        with store_errors(self.redis):
            text = self.redis.hget(self.keys.board, "version")
        return int(text) if text and text.isdigit() else None

    def clock_ms(self) -> int:
        """The latest instant a leader saw on this board; 0 if none ever did."""
        with store_errors(self.redis):
            text = self.redis.hget(self.keys.board, "clock")
        return int(text) if text and text.isdigit() else 0

    def ids(self) -> set[int]:
        """Every target the board knows."""
        with store_errors(self.redis):
            return {int(key) for key, _ in self.redis.hscan_iter(self.keys.spec, count=5000)}

    def queues(self) -> list[str]:
        with store_errors(self.redis):
            return sorted(str(queue) for queue in self.redis.smembers(self.keys.queues))

    def now_ms(self) -> int:
        """The server's clock: one for the whole cluster."""
        with store_errors(self.redis):
            seconds, micros = self.redis.time()
        return int(seconds) * 1000 + int(micros) // 1000

    def wake(self, note: str) -> None:
        """Tell the leader that there is something to do; a lost note only costs time."""
        with store_errors(self.redis):
            self.redis.publish(self.keys.wake, note)

    def _run(self, name: str, arguments: Sequence[Any]) -> Any:
        with store_errors(self.redis):
            return self._scripts[name](keys=[self.keys.prefix], args=arguments)

    @cached_property
    def _scripts(self) -> dict[str, Script]:
        of_leader = (
            "claim",
            "reap",
            "place",
            "respread",
            "leases",
            "early",
            "unpark",
            "withhold",
            "release",
        )
        return lua_scripts.load(
            self.redis, (*of_leader, "start", "hold", "finish", "demand", "check")
        )


_UNKNOWN = target_status.LETTERS[State.UNKNOWN]
#: How `finish` is told of a place.
_KINDS = {Place.DUE: "", Place.URGENT: "u", Place.PARKED: "p"}


def _answer(
    target_id: int,
    result: Result,
    run: str | None,
    spec: str | None,
    text: str | None,
    kept: bool,
    now_ms: int,
) -> Started:
    """From the texts on the board, of which `start` has read only the token, the attempt and the spec."""
    if result is not Result.OK or not run or not spec:
        return Started(target_id, result, 0, 0, "", target_status.Status())
    version, _, _, queue = spec.split("|", 3)
    plan = run.split("|", 2)[1]
    plan_ms = int(plan) if plan.isdigit() else now_ms
    return Started(
        target_id, result, plan_ms, int(version), queue, target_status.unpack(text or ""), kept
    )


def _verdicts(refused: Sequence[str]) -> dict[int, Result]:
    return {int(target_id): Result(why) for target_id, why in batched(refused, 2)}


def _ms(now_ms: int | None) -> str:
    return "" if now_ms is None else str(now_ms)


def _led(reply: list[Any]) -> list[Any]:
    if reply and reply[0] == "NOTLEADER":
        raise NotLeader
    return reply


def _whole(score: float) -> int:
    """A score may be anything that somebody wrote."""
    return int(score) if math.isfinite(score) else 0


def _interval_ms(spec: str | None) -> int:
    """0 for a spec that nobody can read."""
    parts = (spec or "").split("|")
    return int(parts[1]) if len(parts) > 1 and parts[1].isdigit() else 0


def packed(spec: TargetSpec) -> str:
    """As it stands in `spec`; empty for a target that should not be on the board."""
    return (
        f"{spec.version}|{spec.interval_ms}|{spec.timeout_ms}|{spec.queue}" if spec.enabled else ""
    )
