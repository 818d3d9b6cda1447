"""What the leader reads at the start of a round, in one round trip with its housekeeping."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from poller.domain.record.overview import Worker
from poller.state.board.board_reader import BoardReader
from poller.state.board.housekeeping import Housekeeping, Kept
from poller.state.cluster import beat_registry, worker_queues, worker_registry
from poller.state.cluster.beat_registry import BeatInstance
from poller.state.redis_client import store_errors


@dataclass(frozen=True, slots=True)
class Survey:
    now_ms: int  # the server's clock
    #: The instant of the reply by this process's monotonic clock. The server read its clock before
    #: that, so the clock that a leader derives from both is never ahead: no slot is claimed early.
    read_mono: float
    is_empty: bool  # the board is new or was flushed
    workers: Sequence[Worker]  # all entries of the registry
    entry_s: float | None  # when RedBeat's next entry is due; None without entries
    entries: int  # of RedBeat
    own_depths: Mapping[str, int]  # batches that wait in each queue of a single worker
    kept: Kept | None  # what the housekeeping did


class Surveyor:
    """The leader's questions. `schedule_key` is RedBeat's sorted set of entries."""

    def __init__(self, board: BoardReader, schedule_key: str) -> None:
        self._board = board
        self._schedule_key = schedule_key

    def survey(
        self,
        housekeeping: Housekeeping | None,
        beat: BeatInstance | None = None,
    ) -> Survey:
        """Ask about everything. `beat` is written to the registry of beats. Raises StoreError."""
        client, keys = self._board.redis, self._board.keys
        pipe = client.pipeline(transaction=False)
        pipe.time()
        pipe.hget(keys.board, "version")
        pipe.hgetall(keys.workers)
        # RedBeat ignores an entry whose instant is below zero.
        pipe.zrangebyscore(self._schedule_key, 0, "+inf", start=0, num=1, withscores=True)
        pipe.zcard(self._schedule_key)
        worker_queues.add_own_depths(self._board.scripts, pipe)
        if beat:
            beat_registry.add_to(pipe, keys, beat)
        if housekeeping:
            housekeeping.add_to(pipe)

        sent_mono = time.monotonic()
        with store_errors(client, "survey"):
            replies = pipe.execute(raise_on_error=False)
            clock, version, workers, entries, entry_count, depths, *replies = replies
            read_mono = time.monotonic()
            for reply in (clock, version, workers):
                if isinstance(reply, Exception):
                    raise reply

        now_ms = int(clock[0]) * 1000 + int(clock[1]) // 1000
        self._board.clock.record(now_ms, sent_mono, read_mono)
        kept = housekeeping.read(iter(replies[-3:])) if housekeeping else None
        return Survey(
            now_ms=now_ms,
            read_mono=read_mono,
            is_empty=not (version and version.isdigit()),
            workers=worker_registry.parse_entries(workers),
            entry_s=_entry_s(entries),
            entries=entry_count if isinstance(entry_count, int) else 0,
            own_depths=worker_queues.read_own_depths(self._board.scripts, depths),
            kept=kept,
        )


def _entry_s(entries: Any) -> float | None:
    """The instant of the first entry; 0 if another program damaged the set: RedBeat reports it."""
    if isinstance(entries, Exception):
        return 0.0
    return float(entries[0][1]) if entries else None
