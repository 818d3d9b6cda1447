"""Breakers for people: which are open, close them, and open one by hand. Workers decide over them elsewhere.

What a person opened is kept apart, in `barred`: no poll that was under way, no edit and no lost lease undoes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from redis.commands.core import Script

from poller.domain.batched import batched
from poller.domain.failures import circuit_breaker
from poller.domain.failures.circuit_breaker import BreakerState
from poller.domain.record import target_status
from poller.domain.record.target_status import Status
from poller.domain.scheduling import slots
from poller.state.board import lua_scripts
from poller.state.board.moves import Board
from poller.state.redis_client import store_errors

PAGE = 2_000
_CHUNK = 200
#: A status that changes between our look and our move is looked at again; a target is polled once a second at most.
_LOOKS = 5


@dataclass(frozen=True, slots=True)
class Bar:
    """A person's opening."""

    until_ms: int
    since_ms: int
    who: str


@dataclass(frozen=True, slots=True)
class Seen:
    """The breaker of one target, and where that target waits."""

    id: int
    interval_ms: int
    status: Status
    text: str  # the status as it is stored
    bar: Bar | None = None
    place: str = ""  # due, urgent, in_flight, parked or held
    next_ms: int = 0  # when it may be polled again; 0: not known, or now
    queue: str = ""

    def position(self, now_ms: int) -> BreakerState:
        return (
            BreakerState.OPEN if self.bar else circuit_breaker.state_at(self.status.breaker, now_ms)
        )

    @property
    def since_ms(self) -> int:
        """Since when it is open; 0 when it is closed."""
        return self.bar.since_ms if self.bar else self.status.breaker.since_ms

    @property
    def is_open(self) -> bool:
        return bool(self.bar or self.status.breaker.trips)


class Breakers:
    def __init__(self, board: Board) -> None:
        self._redis = board.redis
        self._keys = board.keys

    def open(self, now_ms: int) -> Iterator[Seen]:
        """Every open one, without its place, in no order; one may come twice while the fleet grows."""
        bars = self._bars(now_ms)
        for texts in self._pages():
            wanted = {
                i: text
                for i, text in texts.items()
                if i in bars or target_status.OPEN in text.partition("[")[0]
            }
            for i, (interval_ms, _) in self._specs(list(wanted)).items():
                yield Seen(i, interval_ms, target_status.unpack(wanted[i]), wanted[i], bars.get(i))

    def look(self, ids: Sequence[int], now_ms: int) -> dict[int, Seen]:
        """These, open or not, with their places; those the board does not know are left out."""
        found: dict[int, Seen] = {}
        for chunk in batched(ids, _CHUNK):
            found.update(self._look(chunk, now_ms))
        return found

    def reset(self, ids: Sequence[int], now_ms: int) -> dict[int, str]:
        """Close them and forget their failures: `due`, `inflight`, `held`, `closed` (already), `changed` or `gone`."""
        answers: dict[int, str] = dict.fromkeys(ids, "changed")
        for _ in range(_LOOKS):
            left = [i for i, answer in answers.items() if answer == "changed"]
            seen = self.look(left, now_ms)
            answers.update(
                {
                    i: "closed" if i in seen else "gone"
                    for i in left
                    if i not in seen or _is_well(seen[i])
                }
            )
            doing = [each for each in seen.values() if not _is_well(each)]
            for chunk in batched(doing, _CHUNK):
                words = [word for each in chunk for word in _reset(each, now_ms)]
                answers.update(
                    zip((each.id for each in chunk), self._run("reset", words), strict=True)
                )
            if not doing:
                break
        return answers

    def bar(self, ids: Sequence[int], bar: Bar) -> dict[int, str]:
        """Open them by hand: nobody polls them until then unless asked to. `barred`, `inflight` or `gone` for each."""
        answers: dict[int, str] = {}
        for chunk in batched(ids, _CHUNK):
            made = self._run("bar", [bar.until_ms, bar.since_ms, bar.who, *chunk])
            answers.update(zip(chunk, made, strict=True))
        return answers

    def _look(self, ids: Sequence[int], now_ms: int) -> Iterator[tuple[int, Seen]]:
        specs = self._specs(ids)
        if not specs:
            return
        keys, names = self._keys, [str(i) for i in specs]
        pipe = self._redis.pipeline(transaction=False)
        pipe.hmget(keys.status, names)
        pipe.hmget(keys.barred, names)
        for i, (_, queue) in specs.items():
            for place in (
                keys.due(queue),
                keys.urgent(queue),
                keys.parked,
                keys.held,
                keys.inflight,
            ):
                pipe.zscore(place, str(i))
        with store_errors(self._redis):
            texts, bars, *scores = pipe.execute()
        waits = batched(scores, len(_PLACES))
        for (i, (interval_ms, queue)), text, bar, row in zip(
            specs.items(), texts, bars, waits, strict=True
        ):
            place, next_ms = _place(row)
            by_hand = _bar(bar, now_ms)
            yield (
                i,
                Seen(
                    i,
                    interval_ms,
                    target_status.unpack(text or ""),
                    text or "",
                    by_hand,
                    place,
                    next_ms,
                    queue,
                ),
            )

    def _pages(self) -> Iterator[dict[int, str]]:
        cursor, begun = 0, False
        while cursor or not begun:
            begun = True
            with store_errors(self._redis):
                answer: Any = self._redis.hscan(self._keys.status, cursor, count=PAGE)
            cursor = answer[0]
            yield {int(key): text for key, text in answer[1].items() if key.isdigit()}

    def _bars(self, now_ms: int) -> Mapping[int, Bar]:
        with store_errors(self._redis):
            rows: Iterable[Any] = self._redis.hscan_iter(self._keys.barred, count=PAGE)
            found = {int(key): _bar(text, now_ms) for key, text in rows if key.isdigit()}
        return {i: bar for i, bar in found.items() if bar}

    def _specs(self, ids: Sequence[int]) -> dict[int, _Spec]:
        with store_errors(self._redis):
            texts: Any = self._redis.hmget(self._keys.spec, [str(i) for i in ids]) if ids else []
        words = {i: str(text).split("|", 3) for i, text in zip(ids, texts, strict=True) if text}
        return {
            i: _Spec(int(w[1]), w[3])
            for i, w in words.items()
            if len(w) == _SPEC_WORDS and w[1].isdigit()
        }

    def _run(self, name: str, arguments: Sequence[Any]) -> Any:
        with store_errors(self._redis):
            return self._scripts[name](keys=[self._keys.prefix], args=arguments)

    @cached_property
    def _scripts(self) -> dict[str, Script]:
        return lua_scripts.load(self._redis, ("bar", "reset"))


class _Spec(NamedTuple):
    interval_ms: int
    queue: str


_SPEC_WORDS = 4
_PLACES = ("due", "urgent", "parked", "held", "in_flight")
_INSTANTS = 1000  # below this a score is no instant but a wish


def _place(scores: Sequence[float | None]) -> tuple[str, int]:
    for name, score in zip(_PLACES, scores, strict=True):
        if score is not None:
            waits = name in ("due", "urgent", "parked") and score >= _INSTANTS
            return name, int(score) if waits else 0
    return "", 0


def _bar(text: str | None, now_ms: int) -> Bar | None:
    """What is written in `barred`, unless it is over or was not written by us."""
    until, _, rest = (text or "").partition("|")
    since, _, who = rest.partition("|")
    if not (until.isdigit() and since.isdigit()) or int(until) <= now_ms:
        return None
    return Bar(int(until), int(since), who)


def _is_well(seen: Seen) -> bool:
    return not seen.is_open and not seen.status.failures


def _reset(seen: Seen, now_ms: int) -> tuple[Any, ...]:
    """The words of the script for one target; what was said of its last poll stays."""
    closed = seen.status._replace(breaker=circuit_breaker.CLOSED, failures=0)
    # A text that nobody can read is left as it is.
    new = closed.pack() if seen.status.run_ms else seen.text
    return seen.id, seen.text, new, slots.next_slot_ms(seen.id, seen.interval_ms, now_ms)
