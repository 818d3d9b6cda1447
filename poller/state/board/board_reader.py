"""Queries of the board. They move no target."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from redis import Redis

from poller.domain.batched import batched
from poller.domain.metrics.series_ends import Standing
from poller.domain.record import target_status
from poller.state.board import record_formats
from poller.state.board.board_clock import BoardClock
from poller.state.board.board_values import Check, Sizes, Standings, Waiting
from poller.state.board.lua_scripts import Scripts
from poller.state.keys import Keys
from poller.state.redis_client import store_errors

_CHUNK = 500


class BoardReader:
    """The board as it stands. Every method raises StoreError."""

    def __init__(self, client: Redis, keys: Keys) -> None:
        self.redis = client
        self.keys = keys
        self.scripts = Scripts(client, keys)
        self.clock = BoardClock()

    def now_ms(self) -> int:
        """The server's clock, which is the clock of the whole cluster."""
        sent_mono = time.monotonic()
        with store_errors(self.redis):
            seconds, micros = self.redis.time()

        whole_ms = int(seconds) * 1000
        now_ms = whole_ms + int(micros) // 1000
        self.clock.record(now_ms, sent_mono, time.monotonic())
        return now_ms

    def clock_ms(self) -> int:
        """The latest instant at which a leader claimed; 0 before the first claim."""
        return self._board_field("clock") or 0

    def version(self) -> int | None:
        """The inventory version on the board; None for a board that is new or was flushed."""
        return self._board_field("version")

    def ids(self) -> set[int]:
        """Every target on the board."""
        ids = set()
        with store_errors(self.redis):
            for member, _ in self.redis.hscan_iter(self.keys.spec, count=5000):
                ids.add(int(member))

        return ids

    def queues(self) -> list[str]:
        """Every queue of the board, sorted."""
        with store_errors(self.redis):
            queues: Any = self.redis.smembers(self.keys.queues)

        return sorted(queues)

    def statuses(self, ids: Sequence[int]) -> dict[int, target_status.Status]:
        """The status of each target that has one."""
        texts = self._records(self.keys.status, ids)

        statuses = {}
        for target_id, text in zip(ids, texts, strict=True):
            if text:
                statuses[target_id] = target_status.unpack(text)

        return statuses

    def specs(self, ids: Sequence[int]) -> list[str | None]:
        """The `spec` record of each target, in the order of the ids.

        None stands for a target that is not on the board.
        """
        return self._records(self.keys.spec, ids)

    def standings(self, ids: Sequence[int]) -> Standings | None:
        """The state of these targets on the board, and when; None while the board is being built.

        Targets that are not on the board are among them.
        """
        members = [str(target_id) for target_id in ids]
        pipe = self.redis.pipeline(transaction=True)
        pipe.time()
        pipe.hget(self.keys.board, "version")
        pipe.hmget(self.keys.spec, members)
        pipe.hmget(self.keys.status, members)
        with store_errors(self.redis):
            (seconds, micros), version, specs, statuses = pipe.execute()

        if version is None:
            return None
        by_target = {}
        for target_id, spec, status in zip(ids, specs, statuses, strict=True):
            by_target[target_id] = _standing(spec, status or "")
        return Standings(int(seconds) * 1000 + int(micros) // 1000, by_target)

    def left_alone(self, ids: Sequence[int], now_ms: int) -> set[int]:
        """Targets whose site is dark, or whose breaker an operator keeps open."""
        if not ids:
            return set()
        members = [str(target_id) for target_id in ids]
        pipe = self.redis.pipeline(transaction=True)
        pipe.hmget(self.keys.opened, members)
        pipe.zmscore(self.keys.held, members)
        with store_errors(self.redis):
            openings, held = pipe.execute()

        found = set()
        for target_id, opening, site in zip(ids, openings, held, strict=True):
            if site is not None or record_formats.parse_opening(opening, now_ms):
                found.add(target_id)
        return found

    def sizes(self) -> Sizes:
        """Numbers of targets, counted in one transaction."""
        queues = self.queues()
        pipe = self.redis.pipeline(transaction=True)
        pipe.hlen(self.keys.spec)
        pipe.zcard(self.keys.inflight)
        pipe.zcard(self.keys.parked)
        pipe.zcard(self.keys.held)
        for queue in queues:
            pipe.zcard(self.keys.due(queue))
            pipe.zcard(self.keys.urgent(queue))

        with store_errors(self.redis):
            targets, in_flight, *waiting = pipe.execute()

        return Sizes(
            targets=targets,
            waiting=sum(waiting),
            in_flight=in_flight,
        )

    def waiting(
        self, queue: str, after_ms: int | str, before_ms: int | str, limit: int = 1000
    ) -> list[Waiting]:
        """Due targets of a queue with a slot in this range (both ends included), earliest first."""
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
            if not rows:
                return []
            specs: Any = self.redis.hmget(self.keys.spec, [member for member, _ in rows])

        targets = []
        for (member, score), spec in zip(rows, specs, strict=True):
            if member.isdigit():
                interval_ms = record_formats.interval_ms(spec)
                target = Waiting(int(member), _whole(score), interval_ms)
                targets.append(target)

        return targets

    def parked(self) -> Iterator[tuple[int, int]]:
        """Every parked target with the instant of its slow retry, in pages and in no order."""
        with store_errors(self.redis):
            rows: Any = self.redis.zscan_iter(self.keys.parked, count=1000)
            for member, at_ms in rows:
                yield int(member), int(at_ms)

    def held(self, site: int) -> set[int]:
        """Targets that are held because this site is dark."""
        with store_errors(self.redis):
            members: Any = self.redis.zrange(self.keys.held, site, site, byscore=True)

        return set(map(int, members))

    def all_held(self) -> dict[int, int]:
        """Every held target with the number of its site."""
        with store_errors(self.redis):
            rows: Any = self.redis.zrange(self.keys.held, 0, -1, withscores=True)

        sites = {}
        for member, site in rows:
            if member.isdigit():
                sites[int(member)] = _whole(site)

        return sites

    def check(self, ids: Iterable[int]) -> Check:
        """Verify that each of these targets is in exactly one place."""
        result = Check()
        for chunk in batched(ids, _CHUNK):
            counts = self.scripts.run("check", chunk)
            for target_id, places in zip(chunk, counts, strict=True):
                if places < 1:
                    result.lost.append(target_id)
                elif places > 1:
                    result.doubled.append(target_id)

        return result

    def _records(self, key: str, ids: Sequence[int]) -> list[str | None]:
        if not ids:
            return []

        members = [str(target_id) for target_id in ids]
        with store_errors(self.redis):
            records: Any = self.redis.hmget(key, members)

        return list(records)

    def _board_field(self, name: str) -> int | None:
        with store_errors(self.redis):
            text = self.redis.hget(self.keys.board, name)

        if text and text.isdigit():
            return int(text)
        return None


def _standing(spec: str | None, status: str) -> Standing:
    """Parse the records as far as needed: most targets were just polled by another worker."""
    return Standing(
        version=record_formats.version(spec),
        finished_ms=target_status.finished_ms(status),
        left_over=target_status.unpack(status).shape if target_status.is_failing(status) else 0,
    )


def _whole(score: float) -> int:
    """A score as a whole number; 0 for one that another program set to infinity."""
    return int(score) if math.isfinite(score) else 0
